"""`vmap`: a function of one example, run on a whole batch."""

import functools

from ..ir.op import TABLE
from ..tracer.batching import BatchedTensor, Batching
from ..tracer.tensor import Tensor
from .trees import leaves_of, rebuild, spread


def name_of(function):
    """How errors call a function."""
    if hasattr(function, "__name__"):
        return function.__name__
    if isinstance(function, functools.partial):
        return f"functools.partial({name_of(function.func)}, ...)"
    return repr(function)


def vmap(func, in_dims=0, out_dims=0, randomness="error", *, chunk_size=None):
    """A function that maps `func` over dimensions of its arguments.

    `in_dims` and `out_dims` say where the mapped dimension lies (None: not mapped), per argument
    and result; `randomness` is "error", "same" or "different"; `chunk_size` limits how many
    examples run at once.
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or "
                           f"'same'. Got {randomness}")  # fmt: skip
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func, updated=())
    def mapped(*args, **kwargs):
        _check_out_dims(out_dims, func)
        size, dims, leaves, structure = _inputs(in_dims, args, func)
        if chunk_size is None or chunk_size >= size:
            return _run(func, size, dims, leaves, structure, out_dims, randomness, kwargs)
        return _chunked(func, size, dims, leaves, structure, out_dims, randomness, kwargs,
                        chunk_size)  # fmt: skip

    return mapped


def _check_out_dims(out_dims, func):
    for dim in leaves_of(out_dims)[0]:
        if dim is not None and not isinstance(dim, int):
            raise ValueError(
                f"vmap({name_of(func)}, ..., out_dims={out_dims}): `out_dims` must be an int, None "
                "or a python collection of ints representing where in the outputs the vmapped "
                "dimension should appear."
            )


def _inputs(in_dims, args, func):
    """The batch size, and per leaf of the arguments its mapped dimension."""
    where = f"vmap({name_of(func)}, in_dims={in_dims}, ...)(<inputs>): "
    if not isinstance(in_dims, int | tuple):
        raise ValueError(f"{where}expected `in_dims` to be int or a (potentially nested) tuple "
                         f"matching the structure of inputs, got: {type(in_dims)}.")  # fmt: skip
    if not args:
        raise ValueError(
            f"vmap({name_of(func)})(<inputs>): got no inputs. Maybe you forgot to add inputs, or "
            "you are trying to vmap over a function with no inputs. The latter is unsupported."
        )
    leaves, structure = leaves_of(args)
    dims = spread(in_dims, args)
    if dims is None:
        raise ValueError(f"{where}in_dims is not compatible with the structure of `inputs`. "
                         f"in_dims is {in_dims} but inputs has structure {structure}.")  # fmt: skip
    dims = [_checked_dim(dim, leaf, where) for dim, leaf in zip(dims, leaves)]
    sizes = [leaf.shape[dim] for dim, leaf in zip(dims, leaves) if dim is not None]
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over")
    if any(size != sizes[0] for size in sizes):
        raise ValueError("vmap: Expected all tensors to have the same size in the mapped "
                         f"dimension, got sizes {sizes} for the mapped dimension")  # fmt: skip
    return sizes[0], dims, leaves, structure


def _checked_dim(dim, leaf, where):
    if dim is None:
        return None
    if not isinstance(dim, int):
        raise ValueError(f"{where}Got in_dim={dim} for an input but in_dim must be either an "
                         "integer dimension or None.")  # fmt: skip
    if not isinstance(leaf, Tensor):
        raise ValueError(f"{where}Got in_dim={dim} for an input but the input is of type "
                         f"{type(leaf)}. We cannot vmap over non-Tensor arguments, please use None "
                         "as the respective in_dim")  # fmt: skip
    if not -leaf.ndim <= dim < leaf.ndim:
        raise ValueError(f"{where}Got in_dim={dim} for some input, but that input is a Tensor of "
                         f"dimensionality {leaf.ndim} so expected in_dim to satisfy -{leaf.ndim} "
                         f"<= in_dim < {leaf.ndim}.")  # fmt: skip
    return dim % leaf.ndim


def _run(func, size, dims, leaves, structure, out_dims, randomness, kwargs):
    level = Batching(size, randomness)
    with level:
        below = level.below
        wrapped = []
        for dim, leaf in zip(dims, leaves):
            wrapped.append(leaf if dim is None else _below(level, below, leaf, dim))
        result = func(*rebuild(structure, wrapped), **kwargs)
    return _outputs(level, result, out_dims, func)


def _below(level, below, leaf, dim):
    """Wraps an argument; moving its dimension is the business of the level below."""
    from ..ir.bind import state

    state.top = below
    try:
        return level.wrap(leaf, dim)
    finally:
        state.top = level


def _outputs(level, result, out_dims, func):
    name = name_of(func)
    leaves, structure = leaves_of(result)
    if isinstance(result, Tensor):
        dims = [out_dims[0]] if isinstance(out_dims, tuple) and len(out_dims) == 1 else (
            [out_dims] if out_dims is None or isinstance(out_dims, int) else None)  # fmt: skip
    else:
        dims = spread(out_dims, result)
    if dims is None:
        raise ValueError(
            f"vmap({name}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with "
            f"the structure of `outputs`. out_dims is {out_dims} but outputs has structure "
            f"{structure}."
        )
    done = []
    for leaf, dim in zip(leaves, dims):
        if dim is None:
            if isinstance(leaf, BatchedTensor) and leaf._level is level:
                if leaf._batched:
                    raise ValueError(f"vmap({name}, ...): `{name}` can not return a BatchedTensor "
                                     "when out_dim is None")  # fmt: skip
                leaf = leaf._value
            done.append(leaf)
            continue
        if not isinstance(leaf, Tensor):
            raise ValueError(f"vmap({name}, ...): `{name}` must only return Tensors, got type "
                             f"{type(leaf)}. Did you mean to set out_dims= to None for "
                             "output?")  # fmt: skip
        rank = leaf.ndim + 1
        if not -rank <= dim < rank:
            raise IndexError(f"Dimension out of range (expected to be in range of [{-rank}, "
                             f"{rank - 1}], but got {dim})")  # fmt: skip
        done.append(level.unwrap(leaf, dim % rank))
    return rebuild(structure, done)


def _chunked(func, size, dims, leaves, structure, out_dims, randomness, kwargs, chunk_size):
    """The batch in pieces, joined along the mapped dimension of the results."""
    pieces = []
    for start in range(0, size, chunk_size):
        count = min(chunk_size, size - start)
        part = [leaf if dim is None else leaf.narrow(dim, start, count)
                for dim, leaf in zip(dims, leaves)]  # fmt: skip
        pieces.append(_run(func, count, dims, part, structure, out_dims, randomness, kwargs))
    columns = [leaves_of(piece) for piece in pieces]
    shape = columns[0][1]
    places = [out_dims] if isinstance(pieces[0], Tensor) and isinstance(out_dims, int) else (
        spread(out_dims, pieces[0]))  # fmt: skip
    joined = []
    for k, dim in enumerate(places):
        parts = [column[0][k] for column in columns]
        if dim is None:
            joined.append(parts[0])
        else:
            joined.append(TABLE["cat"](*parts, dim=dim % parts[0].ndim))
    return rebuild(shape, joined)
