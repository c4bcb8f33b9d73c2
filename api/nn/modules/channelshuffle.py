"""ChannelShuffle."""

from __future__ import annotations

from ...tracer.tensor import Tensor
from .. import functional as F
from ._names import shown
from .module import Module


class ChannelShuffle(Module):
    """ChannelShuffle(groups): interleaves the groups of channels."""

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        return shown(self, "groups")
