"""BlockMask: which blocks of the matrix of scores attention computes, and the mask inside them.

Note [Ordered blocks]
    A matrix of blocks is kept as the number of blocks in each row, and each row's columns with
    those that are computed first. Blocks without a single masked element are listed apart ("full"):
    kernels that skip blocks need no mask there. Ours compute all scores; the lists are for those
    who read, print or cut masks.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

from ... import arange, argsort, int32, where
from ...tracer.tensor import Tensor

DEFAULT_SIZE = 128


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """A mask_mod that hides nothing."""
    return batch.new_ones((), dtype=_bool())


def sliced_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """What stands in the place of mask_mod after slicing: indices mean something else then."""
    raise RuntimeError(
        "Cannot use mask_mod from a sliced BlockMask. When you slice a BlockMask using [], the "
        "mask_mod attribute is reset. You must set it from the original BlockMask's mask_mod."
    )


def _bool() -> Any:
    from ... import bool as bool_

    return bool_


def to_ordered(dense: Tensor) -> tuple[Tensor, Tensor]:
    """(number of blocks in each row, columns); see Note [Ordered blocks]."""
    dense = dense.to(int32)
    columns = argsort(dense, dim=-1, descending=True, stable=True)
    return dense.sum(-1).to(int32), columns.to(int32)


def to_dense(counts: Tensor, columns: Tensor) -> Tensor:
    """The matrix of zeros and ones of ordered blocks."""
    given = arange(columns.shape[-1], dtype=int32) < counts.unsqueeze(-1)
    return columns.new_zeros(columns.shape).scatter(-1, columns.long(), given.to(int32))


def transposed(counts: Tensor | None, columns: Tensor | None) -> tuple[Any, Any]:
    """Ordered blocks by column."""
    if counts is None or columns is None:
        return None, None
    return to_ordered(to_dense(counts, columns).transpose(-2, -1))


def cropped(counts: Any, columns: Any, rows: int, width: int) -> tuple[Any, Any]:
    """Ordered blocks of the upper left corner."""
    if counts is None:
        return None, None
    columns, counts = columns[:, :, :rows, :width], counts[:, :, :rows]
    counts = where(counts < width, counts, width)
    return (columns < counts[:, :, :, None]).sum(-1).to(int32), columns


class BlockMask:
    """BlockMask(seq_lengths, kv_num_blocks, kv_indices, ...): made by `create_block_mask`."""

    def __init__(
        self, seq_lengths: tuple[int, int], kv_num_blocks: Tensor, kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None, full_kv_indices: Tensor | None,
        q_num_blocks: Tensor | None, q_indices: Tensor | None, full_q_num_blocks: Tensor | None,
        full_q_indices: Tensor | None, BLOCK_SIZE: tuple[int, int] = (DEFAULT_SIZE, DEFAULT_SIZE),
        mask_mod: Any = noop_mask,
    ) -> None:  # fmt: skip
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        for side, pair in (("kv", (full_kv_num_blocks, full_kv_indices)),
                           ("q", (full_q_num_blocks, full_q_indices))):  # fmt: skip
            if (pair[0] is None) != (pair[1] is None):
                raise AssertionError(f"full_{side}_num_blocks and full_{side}_indices must be both "
                                     "provided or omitted")  # fmt: skip
        self.seq_lengths, self.BLOCK_SIZE, self.mask_mod = seq_lengths, BLOCK_SIZE, mask_mod
        self.kv_num_blocks, self.kv_indices = kv_num_blocks, kv_indices
        self.full_kv_num_blocks, self.full_kv_indices = full_kv_num_blocks, full_kv_indices
        self.q_num_blocks, self.q_indices = q_num_blocks, q_indices
        self.full_q_num_blocks, self.full_q_indices = full_q_num_blocks, full_q_indices

    @classmethod
    def from_kv_blocks(
        cls, kv_num_blocks: Tensor, kv_indices: Tensor, full_kv_num_blocks: Tensor | None = None,
        full_kv_indices: Tensor | None = None, BLOCK_SIZE: Any = DEFAULT_SIZE,
        mask_mod: Any = None, seq_lengths: tuple[int, int] | None = None,
        compute_q_blocks: bool = True,
    ) -> BlockMask:  # fmt: skip
        """from_kv_blocks(kv_num_blocks, kv_indices): the lists by query follow from these."""
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
        by_query: tuple[Any, ...] = (None,) * 4
        if compute_q_blocks:
            by_query = (*transposed(kv_num_blocks, kv_indices),
                        *transposed(full_kv_num_blocks, full_kv_indices))  # fmt: skip
        if seq_lengths is None:
            seq_lengths = (kv_indices.shape[-2] * size[0], kv_indices.shape[-1] * size[1])
        return cls(seq_lengths, kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices,
                   *by_query, size, mask_mod or noop_mask)  # fmt: skip

    def as_tuple(self, flatten: bool = True) -> tuple[Any, ...]:
        """Lengths, lists, block size and mask, in torch's order."""
        sizes = self.BLOCK_SIZE if flatten else (self.BLOCK_SIZE,)
        lengths = self.seq_lengths if flatten else (self.seq_lengths,)
        return (*lengths, self.kv_num_blocks, self.kv_indices, self.full_kv_num_blocks,
                self.full_kv_indices, self.q_num_blocks, self.q_indices, self.full_q_num_blocks,
                self.full_q_indices, *sizes, self.mask_mod)  # fmt: skip

    @property
    def shape(self) -> tuple[int, ...]:
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def numel(self) -> int:
        """How many scores there would be without a mask."""
        return math.prod(self.shape)

    def sparsity(self) -> float:
        """The percentage of scores that lie in blocks that are left out."""
        blocks = self.kv_num_blocks.sum().item()
        if self.full_kv_num_blocks is not None:
            blocks += self.full_kv_num_blocks.sum().item()
        return 100 * (1 - blocks * self.BLOCK_SIZE[0] * self.BLOCK_SIZE[1] / self.numel())

    def to_dense(self) -> Tensor:
        """Ones for the blocks that are computed."""
        dense = to_dense(self.kv_num_blocks, self.kv_indices)
        if self.full_kv_num_blocks is None or self.full_kv_indices is None:
            return dense
        return dense | to_dense(self.full_kv_num_blocks, self.full_kv_indices)

    def __getitem__(self, index: Any) -> BlockMask:
        """The lists of some batches, heads and rows; dims stay, and mask_mod must be set anew."""
        given = index if isinstance(index, tuple) else (index,)
        padded = (*given, *(slice(None),) * 3)[:3]
        places = tuple(
            slice(i % n, i % n + 1) if isinstance(i, int) and -n <= i < 0 else
            slice(i, i + 1) if isinstance(i, int) else i
            for i, n in zip(padded, self.kv_num_blocks.shape)
        )  # fmt: skip
        lists = (self.kv_num_blocks, self.kv_indices, self.full_kv_num_blocks, self.full_kv_indices)
        return self.from_kv_blocks(
            *(None if part is None else part[places] for part in lists),  # type: ignore[arg-type]
            BLOCK_SIZE=self.BLOCK_SIZE, mask_mod=sliced_mask, seq_lengths=self.seq_lengths,
            compute_q_blocks=self.q_indices is not None,
        )  # fmt: skip

    def _adjust(self, new_q_len: int, new_kv_len: int) -> BlockMask:
        """The mask of the upper left corner."""
        rows, width = -(-new_q_len // self.BLOCK_SIZE[0]), -(-new_kv_len // self.BLOCK_SIZE[1])
        return self.from_kv_blocks(
            *cropped(self.kv_num_blocks, self.kv_indices, rows, width),
            *cropped(self.full_kv_num_blocks, self.full_kv_indices, rows, width),
            BLOCK_SIZE=self.BLOCK_SIZE, mask_mod=self.mask_mod,
            seq_lengths=(new_q_len, new_kv_len), compute_q_blocks=self.q_indices is not None,
        )  # fmt: skip

    def to(self, device: Any) -> BlockMask:
        """The mask on a device: there is one."""
        self.kv_num_blocks.to(device)
        return BlockMask(*self.as_tuple(flatten=False))

    # --- printing ---

    def __repr__(self) -> str:
        names = ("kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices",
                 "q_num_blocks", "q_indices", "full_q_num_blocks", "full_q_indices")  # fmt: skip
        parts = [(name, getattr(self, name)) for name in names]
        lines = [f"    {name}={None if part is None else part.shape},\n" for name, part in parts]
        return (f"BlockMask(\n{''.join(lines)}    BLOCK_SIZE={self.BLOCK_SIZE},\n"
                f"    shape={self.shape},\n    sparsity={self.sparsity():.2f}%,\n"
                f"    mask_mod={getattr(self.mask_mod, '__name__', self.mask_mod)}\n)")  # fmt: skip

    def __str__(self) -> str:
        start = f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, \n"
        return f"{start}{self.to_string().strip()}\n)"

    def to_string(self, grid_size: int | tuple[int, int] = (20, 20), limit: int = 4) -> str:
        """Draws the blocks: full, mixed and left out."""
        dense = self.to_dense()
        *lead, rows, columns = dense.shape
        most = (grid_size, grid_size) if isinstance(grid_size, int) else grid_size
        steps = (max(1, -(-rows // most[0])), max(1, -(-columns // most[1])))
        pictures = []
        for number, place in enumerate(itertools.product(*map(range, lead))):
            if number == limit:
                pictures += ["...", "To print out more, set BlockMask.to_string(limit=N)",
                             "You can also index (BlockMask[batch, head]) to choose a specific "
                             "batch or head"]  # fmt: skip
                break
            pictures.append(f"{place}\n{_picture(dense[place], *steps)}")
        return "\n".join(pictures)


def _picture(matrix: Tensor, down: int, right: int) -> str:
    """One character, twice, for each section of a matrix."""
    rows, columns = matrix.shape
    text = ""
    for r in range(0, rows, down):
        for c in range(0, columns, right):
            share = matrix[r : r + down, c : c + right].float().mean().item()
            text += ("█" if share == 1 else " " if share == 0 else "░") * 2
        text += "\n"
    return text
