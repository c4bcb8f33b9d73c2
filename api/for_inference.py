"""Results that a body made in `inference_mode()`, which it left again."""

from __future__ import annotations

from typing import Any

from .sources import Direct, Maker


class ForInference(Direct):
    """A result that the body made in `inference_mode()`, which ends with it."""

    def __call__(self, context: Any) -> Any:
        return made_for_inference(context.results[self.number])


class ViewForInference(Maker):
    """The same for what takes more to make."""

    def __init__(self, maker: Any):
        self.maker = maker

    def __call__(self, context: Any) -> Any:
        return made_for_inference(self.maker(context))

    def know(self, path: Any) -> None:
        self.maker.know(path)

    def at(self, sizes: Any) -> Maker:
        return ViewForInference(self.maker.at(sizes))


def made_for_inference(tensor: Any) -> Any:
    """Marks a tensor, and what it is a view of."""
    tensor._mark = "inference"
    if tensor._view is not None:
        tensor._view.base._mark = "inference"
    return tensor
