"""`torch.torch_version`: versions that compare as versions do."""

import re
from typing import Any

from .version import __version__ as _followed

__all__ = ["TorchVersion"]


class TorchVersion(str):
    """TorchVersion(text): a str; beside others, tuples and strs it is ordered as a version.

    >>> TorchVersion("2.13.0+cpu") >= "2.4", TorchVersion("2.13.0") < (2, 2)
    (True, False)
    """

    def _parts(self, other: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The numbers of both, the shorter one filled with zeros."""
        text = other if isinstance(other, str) else ".".join(map(str, other))
        pair = [tuple(map(int, re.findall(r"\d+", t.partition("+")[0]))) for t in (self, text)]
        width = max(map(len, pair))
        left, right = (numbers + (0,) * (width - len(numbers)) for numbers in pair)
        return left, right

    def __eq__(self, other: Any) -> bool:
        left, right = self._parts(other)
        return left == right

    def __ne__(self, other: Any) -> bool:
        return not self == other

    def __lt__(self, other: Any) -> bool:
        left, right = self._parts(other)
        return left < right

    def __le__(self, other: Any) -> bool:
        return self < other or self == other

    def __gt__(self, other: Any) -> bool:
        return not self <= other

    def __ge__(self, other: Any) -> bool:
        return not self < other

    __hash__ = str.__hash__


__version__ = TorchVersion(_followed)
