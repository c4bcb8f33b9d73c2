"""`Parameter` and `Buffer`: tensors a Module registers when they are assigned to it."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from ..tracer.copying import own_attributes
from ..tracer.creation import empty
from ..tracer.eager import PLAIN_CLASSES
from ..tracer.subclasses import disabled
from ..tracer.tensor import Tensor, _TensorMeta


class _ParameterMeta(_TensorMeta):
    """Instances of other tensor subclasses may be marked as parameters (`_is_param`)."""

    def __instancecheck__(cls, instance: Any) -> bool:
        if type.__instancecheck__(cls, instance):
            return True
        return (cls is Parameter and isinstance(instance, Tensor)
                and instance.__dict__.get("_is_param", False))  # fmt: skip


class Parameter(Tensor, metaclass=_ParameterMeta):
    """Parameter(data, requires_grad=True): a tensor that modules list among their parameters."""

    __slots__ = ()
    __torch_function__ = classmethod(disabled)

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Any:
        if data is None:
            data = empty(0)
        if isinstance(data, Tensor):
            _ = data._array  # a pending tensor has its own class once it was read
        if type(data) is Tensor or type(data) is Parameter:
            return Tensor._make_subclass(cls, data, requires_grad)
        if not isinstance(data, Tensor):
            raise AttributeError(f"'{type(data).__name__}' object has no attribute 'detach'")
        marked = data.detach().requires_grad_(requires_grad)
        if type(marked) is not type(data):  # detach() gives a plain tensor: keep the subclass
            marked = Tensor._make_subclass(type(data), data, requires_grad)
        marked._is_param = True
        return marked

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        text = super().__repr__()
        return f"Parameter containing:\n{text if type(self) is Parameter else f'Parameter({text})'}"

    __str__ = __repr__

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.data.clone(), self.requires_grad)
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> Any:
        facts = (self.data, self.requires_grad, OrderedDict(), own_attributes(self))
        return rebuild_parameter, facts


def rebuild_parameter(
    data: Tensor, requires_grad: bool, backward_hooks: Any, state: Any = None
) -> Parameter:
    """The parameter a pickle describes."""
    parameter = Parameter(data, requires_grad)
    if state:
        parameter.__dict__.update(state)
    return parameter


class _BufferMeta(_TensorMeta):
    def __instancecheck__(cls, instance: Any) -> bool:
        if cls is Buffer and isinstance(instance, Tensor):
            return bool(instance.__dict__.get("_is_buffer", False))
        return type.__instancecheck__(cls, instance)


PLAIN_CLASSES.add(Parameter)


class Buffer(Tensor, metaclass=_BufferMeta):
    """Buffer(data, persistent=True): a tensor that is state of a module but is not trained."""

    __slots__ = ()
    __torch_function__ = classmethod(disabled)

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Any:
        if data is None:
            data = empty(0)
        marked = data.detach().requires_grad_(data.requires_grad)
        marked.persistent = persistent
        marked._is_buffer = True
        return marked


class _Uninitialized:
    """A tensor whose shape a lazy module will learn from its first input."""

    __slots__ = ()
    cls_to_become: Any

    @property
    def shape(self) -> Any:
        """Raises: there is none yet."""
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually "
            "happens in `load_state_dict` when trying to load an uninitialized parameter into an "
            "initialized one. Call `forward` to initialize the parameters before accessing their "
            "attributes."
        )

    def detach(self) -> Any:
        """Itself: there is no history, and no values."""
        return self

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Becomes a parameter, or a buffer, of this shape."""
        tensor: Any = self
        Tensor.data.__set__(tensor, empty(shape, device=device, dtype=dtype or tensor.dtype))
        tensor.__class__ = self.cls_to_become

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            memo[id(self)] = type(self)(dtype=self.dtype)  # type: ignore[call-arg, attr-defined]
        return memo[id(self)]

    def __repr__(self, **_: Any) -> str:
        return f"<{type(self).__name__}>"

    __str__ = __repr__


def _refusing(name: str) -> Any:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        raise ValueError(
            f"Attempted to use an uninitialized parameter in {name}. This error happens when you "
            "are using a `LazyModule` or explicitly manipulating `torch.nn.parameter."
            f"{type(self).__name__}` objects. When using LazyModules Call `forward` with a dummy "
            "batch to initialize the parameters before calling torch functions"
        )

    return method


# What asks for elements, or for their number.
for _name in ("add", "sub", "mul", "truediv", "matmul", "pow", "radd", "rsub", "rmul", "rtruediv",
              "neg", "getitem", "setitem", "len", "lt", "gt", "le", "ge"):  # fmt: skip
    setattr(_Uninitialized, f"__{_name}__", _refusing(_name))
for _name in ("abs", "add", "argmax", "clone", "copy_", "dim", "div", "exp", "fill_", "flatten",
              "item", "log", "matmul", "max", "mean", "min", "mul", "mul_", "add_", "nelement",
              "norm", "normal_", "numel", "numpy", "permute", "pow", "reshape", "sqrt", "std",
              "sub", "sum", "t", "tolist", "transpose", "uniform_", "unsqueeze", "var", "view",
              "zero_"):  # fmt: skip
    setattr(_Uninitialized, _name, _refusing(_name))


class UninitializedParameter(_Uninitialized, Parameter):
    """UninitializedParameter(requires_grad=True, device=None, dtype=None)."""

    __slots__ = ()
    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> Any:
        return Tensor._make_subclass(cls, empty(0, device=device, dtype=dtype), requires_grad)


class UninitializedBuffer(_Uninitialized, Tensor):
    """UninitializedBuffer(requires_grad=False, device=None, dtype=None, persistent=True)."""

    __slots__ = ()
    cls_to_become = Tensor

    def __new__(cls, requires_grad: bool = False, device: Any = None, dtype: Any = None,
                persistent: bool = True) -> Any:  # fmt: skip
        return Tensor._make_subclass(cls, empty(0, device=device, dtype=dtype), requires_grad)


def is_lazy(param: Any) -> bool:
    """Has it no shape yet?"""
    return isinstance(param, _Uninitialized)
