"""`grad`, `grad_and_value`, `vjp`, `jvp`, `linearize`: derivatives of functions, nestable.

Note [Variables of a level]
    A transform differentiates with respect to tensors of its own: fresh leaves, or aliases where
    the argument already has history from an outer level, which then keeps flowing. Whether the
    gradient itself must be recorded is read off the graph: only if it leads to anything besides
    the level's own leaves. Inside vmap it always is, since the batch below may be differentiated.
"""

import contextlib
import functools

from ..ir.bind import state
from ..tracer.backward import grad as autograd_grad
from ..tracer.batching import BatchedTensor, Batching
from ..tracer.eager import history
from ..tracer.modes import enable_grad, set_grad_mode
from ..tracer.mutation import values_kept
from ..tracer.pushing import pull_linearly
from ..tracer.reaching import count_dependencies
from ..tracer.tape import AccumulateGrad
from ..tracer.tensor import Tensor
from .trees import leaves_of, map_tensors, rebuild


def leaf_of(x):
    """A leaf of the same memory; `requires_grad_()` is refused to those whom levels run."""
    previous, state.levels = state.levels, 0
    try:
        return x.detach().requires_grad_()
    finally:
        state.levels = previous


class Level:
    """One differentiation: its variables, and whether its results belong to an outer one."""

    def __init__(self):
        self.enabled = state.grad_enabled
        self.leaves = set()
        self.outer = False
        self.inside = isinstance(state.top, Batching)

    def variable(self, x):
        """This level's own tensor for an argument; see Note [Variables of a level]."""
        if not isinstance(x, Tensor):
            raise ValueError(f"Thing passed to transform API must be Tensor, got {type(x)}")
        if isinstance(state.top, Batching):
            x = state.top.own(x)
        if x.requires_grad and self.enabled:
            self.outer = True
            with enable_grad():
                alias = x.view_as(x)
            alias._view.origin = "level"
            return alias
        fresh = leaf_of(x)
        self.leaves.add(id(fresh))
        return fresh

    def writable(self, variable):
        """The variable as forward mode hands it to a function, which may write to it.

        Another tensor of the same memory and history: a write is no write to a leaf, and leaves
        the variable's place in the graph as it was.
        """
        edge = history(variable)
        if edge is None or isinstance(state.top, Batching) or variable._view is not None:
            return variable
        twin = variable.detach()
        twin._requires_grad = True
        twin._node, twin._nr = edge
        return twin

    transforms = 1  # does the function count as transformed by torch.func?

    @contextlib.contextmanager
    def running(self):
        """The function runs: with history, and under the rules of transformed functions."""
        state.levels += self.transforms
        try:
            with enable_grad():
                yield
        finally:
            state.levels -= self.transforms

    def look(self, outputs):
        """Does history of the outputs lead to other leaves than this level's?"""
        edges = [history(out) for out in outputs if isinstance(out, Tensor) and out.requires_grad]
        for node in count_dependencies([e for e in edges if e is not None]):
            if isinstance(node, AccumulateGrad) and id(node.variable) not in self.leaves:
                self.outer = True
                return

    @property
    def recorded(self):
        """Must the gradient be differentiable?"""
        return self.enabled and (self.outer or self.inside)

    def close(self, value):
        """A result as seen from outside: without history of this level."""
        return map_tensors(self._close, value)

    def _close(self, tensor):
        if self.enabled and self.outer:
            return tensor
        tensor = tensor.detach()
        if isinstance(tensor, BatchedTensor) and not tensor._batched:
            return tensor._value
        return tensor


class PlainLevel(Level):
    """A differentiation of a function that calls what functions outside of transforms may."""

    transforms = 0


def positions(argnums, count):
    """`argnums` checked and made non-negative, as a tuple."""
    if not isinstance(argnums, int | tuple):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    found = []
    for k in (argnums,) if isinstance(argnums, int) else argnums:
        if not isinstance(k, int):
            raise RuntimeError(f"argnum must be int, got: {type(k)}")
        if not -count <= k < count:
            raise RuntimeError(f"Got argnum={k}, but only {count} positional inputs")
        found.append(k % count)
    if not found:
        raise RuntimeError("argnums must be non-empty")
    if len(set(found)) != len(found):
        raise RuntimeError(f"argnums elements must be unique, got {argnums}")
    return tuple(found)


def replaced(args, places, values):
    """`args` with those at `places` replaced."""
    args = list(args)
    for place, value in zip(places, values):
        args[place] = value
    return args


def split_aux(result, has_aux, api):
    """(output, aux) of a function that returns both."""
    if not has_aux:
        return result, None
    if not (isinstance(result, tuple) and len(result) == 2):
        raise RuntimeError(f"{api}: output of function f should be a tuple: (output, aux) if "
                           "has_aux is True")  # fmt: skip
    return result


def grad_and_value(func, argnums=0, has_aux=False):
    """A function that gives the gradient of `func` and its value (and aux)."""

    @functools.wraps(func, updated=())
    def wrapper(*args, **kwargs):
        level = Level()
        places = positions(argnums, len(args))
        variables = [map_variables(level, args[k]) for k in places]
        with level.running():
            result = func(*replaced(args, places, variables), **kwargs)
        output, aux = split_aux(result, has_aux, "grad_and_value(f)(*args)")
        check_scalar(output)
        leaves, structure = leaves_of(tuple(variables))
        grads = gradients_of(level, (output,), leaves, None)
        grads = level.close(rebuild(structure, grads))
        grads = grads[0] if isinstance(argnums, int) else grads
        value = level.close(output)
        return (grads, (value, level.close(aux))) if has_aux else (grads, value)

    return wrapper


def grad(func, argnums=0, has_aux=False):
    """A function that gives the gradient of `func` with respect to arguments `argnums`."""
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func, updated=())
    def wrapper(*args, **kwargs):
        gradient, value = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return wrapper


def map_variables(level, value):
    leaves, structure = leaves_of(value)
    return rebuild(structure, [level.variable(x) for x in leaves])


def check_scalar(output):
    if not isinstance(output, Tensor):
        raise RuntimeError("grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got "
                           f"{type(output)}")  # fmt: skip
    if output.ndim:
        raise RuntimeError(
            "grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got tensor "
            f"with {output.ndim} dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
        )


def gradients_of(level, outputs, variables, cotangents, keep=False):
    """Gradients for all variables, zeros where an output does not depend on one."""
    cotangents = [None] * len(outputs) if cotangents is None else cotangents
    live = [(o, c) for o, c in zip(outputs, cotangents) if o.requires_grad]
    level.look([o for o, _ in live])
    wanted = [x for x in variables if x.requires_grad]
    found = {}
    if live and wanted:
        outs, seeds = zip(*live)
        with set_grad_mode(True):
            grads = autograd_grad(outs, wanted, seeds, retain_graph=keep or level.recorded,
                                  create_graph=level.recorded, allow_unused=True)  # fmt: skip
        found = {id(x): g for x, g in zip(wanted, grads) if g is not None}
    return [found[id(x)] if id(x) in found else x.detach().new_zeros(tuple(x.shape))
            for x in variables]  # fmt: skip


def checked_outputs(result, api):
    """The output leaves, which must be tensors."""
    leaves, structure = leaves_of(result)
    if not leaves or (len(leaves) == 1 and leaves[0] is None):
        raise RuntimeError(f"{api}: Expected f to be a function that has non-empty output (got "
                           f"output = {leaves})")  # fmt: skip
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(f"{api}: expected f(*primals) to return only tensors, got "
                               f"unsupported type {type(leaf)}")  # fmt: skip
    return leaves, structure


def vjp(func, *primals, has_aux=False):
    """(output, function of cotangents that gives the vector-Jacobian product[, aux])."""
    level = Level()
    variables = tuple(map_variables(level, p) for p in primals)
    with level.running():
        result = func(*variables)
    output, aux = split_aux(result, has_aux, "vjp(f, *primals)")
    leaves, shape = checked_outputs(output, "vjp(f, *primals)")
    for leaf in leaves:
        if not leaf.dtype.is_differentiable:
            raise RuntimeError("vjp(f, ...): All outputs of f must be floating-point or complex "
                               f"Tensors, got Tensor with dtype {leaf.dtype!r}")  # fmt: skip
    inputs, structure = leaves_of(variables)

    def pull(cotangents, retain_graph=True, create_graph=None):
        seeds, given = leaves_of(cotangents)
        if given != shape:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of "
                f"outputs to the function. cotangents: {given}, primal output: {shape}"
            )
        level.outer = level.outer or any(s.requires_grad for s in seeds)
        level.enabled = state.grad_enabled
        grads = rebuild(structure, gradients_of(level, leaves, inputs, seeds, keep=True))
        return level.close(grads)

    closed = level.close(output)
    return (closed, pull, level.close(aux)) if has_aux else (closed, pull)


# --- forward mode --------------------------------------------------------------------------------

_JVP = "jvp(f, primals, tangents)"


class Linear:
    """The Jacobian of a function at a point, as a linear map of tangents.

    Two reverse passes make a forward one: see tracer/pushing.py.
    """

    def __init__(self, func, primals, has_aux, level=None):
        self.level = Level() if level is None else level
        variables = [map_variables(self.level, p) for p in primals]
        given = map_tensors(self.level.writable, variables)
        with self.level.running(), values_kept():
            result = func(*given)
        with enable_grad():
            output, self.aux = split_aux(result, has_aux, _JVP)
            self.outputs, self.shape = checked_outputs(output, _JVP)
            self.variables = leaves_of(tuple(variables))[0]
            self.level.look(self.outputs)
            self.seeds = [self.level.variable(out.detach().new_zeros(tuple(out.shape)))
                          for out in self.outputs]  # fmt: skip
            live = [(o, u) for o, u in zip(self.outputs, self.seeds) if o.requires_grad]
            wanted = [x for x in self.variables if x.requires_grad]
            self.pulled = [None] * len(wanted)
            self.wanted = [k for k, x in enumerate(self.variables) if x.requires_grad]
            if live and wanted:
                outs, seeds = zip(*live)
                self.pulled = pull_linearly(outs, wanted, seeds)

    def __call__(self, tangents):
        """Tangents of the outputs, given those of the inputs."""
        pairs = [(g, tangents[k]) for g, k in zip(self.pulled, self.wanted)
                 if g is not None and g.requires_grad]  # fmt: skip
        found = [None] * len(self.seeds)
        self.level.outer = self.level.outer or any(t.requires_grad for _, t in pairs)
        if pairs:
            grads, vectors = zip(*pairs)
            with set_grad_mode(True):
                found = autograd_grad(grads, self.seeds, vectors, retain_graph=True,
                                      create_graph=self.level.recorded,
                                      allow_unused=True)  # fmt: skip
        done = [u.detach().new_zeros(tuple(u.shape)) if f is None else f
                for u, f in zip(self.seeds, found)]  # fmt: skip
        return self.level.close(rebuild(self.shape, done))

    @property
    def output(self):
        return self.level.close(rebuild(self.shape, self.outputs))


def jvp(func, primals, tangents, *, strict=False, has_aux=False):
    """(output, Jacobian-vector product[, aux]) of `func` at `primals` along `tangents`."""
    if not isinstance(primals, tuple):
        raise RuntimeError(f"{_JVP}: Expected primals to be a tuple. E.g. it should be valid to "
                           "call f(*primals).")  # fmt: skip
    points, structure = leaves_of(primals)
    vectors, given = leaves_of(tangents)
    if structure != given:
        raise RuntimeError(
            f"{_JVP}: Expected primals and tangents to have the same python structure. For "
            "example, if primals is a tuple of 3 tensors, tangents also must be. Got primals with "
            f"structure {structure} and tangents with structure {given}"
        )
    for values, name in ((points, "primals"), (vectors, "tangents")):
        if not values:
            raise RuntimeError(f"{_JVP}: Expected {name} to contain at least one Tensor.")
        for value in values:
            if not isinstance(value, Tensor):
                raise RuntimeError(f"{_JVP}: Expected {name} to only contain Tensors, got "
                                   f"{type(value)}")  # fmt: skip
    linear = Linear(func, primals, has_aux)
    if strict and not any(out.requires_grad for out in linear.outputs):
        raise RuntimeError("jvp(f, primals, tangents, strict=True): The output of f is independent "
                           "of the inputs. This is not allowed with strict=True.")  # fmt: skip
    product = linear(vectors)
    if has_aux:
        return linear.output, product, linear.level.close(linear.aux)
    return linear.output, product


def linearize(func, *primals):
    """(output, function of tangents that gives the Jacobian-vector product at `primals`)."""
    linear = Linear(func, primals, False)
    leaves, structure = leaves_of(primals)
    shapes = [tuple(p.shape) for p in leaves]

    def push(*tangents):
        vectors, given = leaves_of(tangents)
        if given != structure:
            raise RuntimeError(f"Expected the tangents {given} to have the same argspec as the "
                               f"primals {structure}")  # fmt: skip
        for k, (vector, shape) in enumerate(zip(vectors, shapes)):
            if tuple(vector.shape) != shape:
                raise RuntimeError(
                    f"tangent:{k} with shape {vector.shape} in flattened pytree doesn't match the "
                    f"shape {shape} of the corresponding primal."
                )
        return linear(vectors)

    return linear.output, push
