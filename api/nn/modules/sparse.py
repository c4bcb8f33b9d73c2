"""Embeddings."""

from __future__ import annotations

from typing import Any

from ...tracer.modes import no_grad
from ...tracer.tensor import Tensor
from .. import functional as F
from .. import init
from ..parameter import Parameter
from ._making import new_parameter
from .module import Module


class _EmbeddingTable(Module):
    """A table of vectors with an optional row that is not trained."""

    def _prepare(self, num_embeddings: int, embedding_dim: int, padding_idx: int | None,
                 word: str) -> None:  # fmt: skip
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise AssertionError(f"{word} must be within num_embeddings")
            padding_idx = padding_idx + num_embeddings if padding_idx < 0 else padding_idx
        self.padding_idx = padding_idx

    def _set_weight(self, given: Tensor | None, device: Any, dtype: Any, train: bool) -> None:
        size = (self.num_embeddings, self.embedding_dim)
        if given is None:
            self.weight = new_parameter(size, device, dtype)
            self.weight.requires_grad = train
            self.reset_parameters()
            return
        if tuple(given.shape) != size:
            raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
        self.weight = Parameter(given, requires_grad=train)

    def reset_parameters(self) -> None:
        """Standard normal; the padding row zero."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx].fill_(0)

    def _texts(self) -> list[str]:
        texts = [f"{self.num_embeddings}, {self.embedding_dim}"]
        if self.max_norm is not None:
            texts.append(f"max_norm={self.max_norm}")
        if self.norm_type != 2:
            texts.append(f"norm_type={self.norm_type}")
        if self.scale_grad_by_freq is not False:
            texts.append(f"scale_grad_by_freq={self.scale_grad_by_freq}")
        return texts


class Embedding(_EmbeddingTable):
    """Embedding(num_embeddings, embedding_dim, padding_idx=None, ...): rows by number."""

    def __init__(self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None,
                 max_norm: float | None = None, norm_type: float = 2.0,
                 scale_grad_by_freq: bool = False, sparse: bool = False,
                 _weight: Tensor | None = None, _freeze: bool = False, device: Any = None,
                 dtype: Any = None) -> None:  # fmt: skip
        super().__init__()
        self._prepare(num_embeddings, embedding_dim, padding_idx, "Padding_idx")
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self._set_weight(_weight, device, dtype, not _freeze)
        self.sparse = sparse

    def forward(self, input: Tensor) -> Tensor:
        return F.embedding(input, self.weight, self.padding_idx, self.max_norm, self.norm_type,
                           self.scale_grad_by_freq, self.sparse)  # fmt: skip

    def extra_repr(self) -> str:
        texts = self._texts()
        if self.padding_idx is not None:
            texts.insert(1, f"padding_idx={self.padding_idx}")
        if self.sparse is not False:
            texts.append("sparse=True")
        return ", ".join(texts)

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True,
                        padding_idx: int | None = None, max_norm: float | None = None,
                        norm_type: float = 2.0, scale_grad_by_freq: bool = False,
                        sparse: bool = False) -> Any:  # fmt: skip
        """An embedding with the given table."""
        if embeddings.dim() != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, columns = embeddings.shape
        return cls(rows, columns, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse,
                   _weight=embeddings, _freeze=freeze)  # fmt: skip


class EmbeddingBag(_EmbeddingTable):
    """EmbeddingBag(num_embeddings, embedding_dim, mode="mean", ...): sums or means of rows."""

    def __init__(self, num_embeddings: int, embedding_dim: int, max_norm: float | None = None,
                 norm_type: float = 2.0, scale_grad_by_freq: bool = False, mode: str = "mean",
                 sparse: bool = False, _weight: Tensor | None = None,
                 include_last_offset: bool = False, padding_idx: int | None = None,
                 device: Any = None, dtype: Any = None) -> None:  # fmt: skip
        super().__init__()
        self._prepare(num_embeddings, embedding_dim, padding_idx, "padding_idx")
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self._set_weight(_weight, device, dtype, True)
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset

    def forward(self, input: Tensor, offsets: Tensor | None = None,
                per_sample_weights: Tensor | None = None) -> Tensor:  # fmt: skip
        return F.embedding_bag(
            input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq,
            self.mode, self.sparse, per_sample_weights, self.include_last_offset, self.padding_idx,
        )  # fmt: skip

    def extra_repr(self) -> str:
        texts = [*self._texts(), f"mode={self.mode!r}"]
        if self.padding_idx is not None:
            texts.append(f"padding_idx={self.padding_idx}")
        return ", ".join(texts)

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True,
                        max_norm: float | None = None, norm_type: float = 2.0,
                        scale_grad_by_freq: bool = False, mode: str = "mean",
                        sparse: bool = False, include_last_offset: bool = False,
                        padding_idx: int | None = None) -> Any:  # fmt: skip
        """A bag with the given table."""
        if embeddings.dim() != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, columns = embeddings.shape
        made = cls(rows, columns, max_norm, norm_type, scale_grad_by_freq, mode, sparse, embeddings,
                   include_last_offset, padding_idx)  # fmt: skip
        made.weight.requires_grad = not freeze
        return made
