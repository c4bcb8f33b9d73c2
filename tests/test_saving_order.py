"""In which order values are saved, which `saved_tensors_hooks` see: torch 2.13's."""

import pytest
import wengert as torch
import wengert.nn.functional as F
from wengert.autograd.graph import saved_tensors_hooks

A, B, C = (torch.full((3,), v, requires_grad=True) for v in (1.0, 2.0, 3.0))
M, N = torch.full((2, 3), 4.0, requires_grad=True), torch.full((3, 4), 5.0, requires_grad=True)
K = torch.full((2, 4), 6.0, requires_grad=True)
Q = [torch.full((1, 1, 2, 3), v, requires_grad=True) for v in (7.0, 8.0, 9.0)]

# the first elements of what is packed
ORDERS = {
    "mul": (lambda: A * B, [2, 1]), "constant": (lambda: A.detach() * B, [1]),
    "div": (lambda: A / B, [2, 1]), "pow": (lambda: B**C, [3, 2, 8]),
    "atan2": (lambda: torch.atan2(A, B), [2, 1]), "maximum": (lambda: torch.maximum(A, B), [2, 1]),
    "mm": (lambda: M @ N, [5, 4]), "bmm": (lambda: torch.bmm(M[None], N[None]), [5, 4]),
    "addmm": (lambda: torch.addmm(K, M, N), [4, 5]), "mv": (lambda: M @ A, [4, 1]),
    "dot": (lambda: A @ B, [1, 2]), "lerp": (lambda: torch.lerp(A, B, C), [2, 1, 3]),
    "addcmul": (lambda: torch.addcmul(A, B, C), [2, 3]),
    "hypot": (lambda: torch.hypot(C, B), [2, 3]),
    "outer": (lambda: torch.outer(A, B), [2, 1]), "mse": (lambda: F.mse_loss(A, B), [1, 2]),
    "conv": (lambda: F.conv1d(M[None], Q[0][0]), [4, 7]), "exp": (lambda: (A * 0).exp(), [1]),
}  # fmt: skip


def packed(function):
    seen, taken = [], []

    def pack(value):
        seen.append(round(value.flatten()[0].item()))
        return value

    def unpack(value):
        taken.append(round(value.flatten()[0].item()))
        return value

    with saved_tensors_hooks(pack, unpack):
        result = function()
    result.sum().backward()
    return seen, taken


@pytest.mark.parametrize("name", ORDERS)
def test_inputs_by_name_then_outputs(name):
    function, expected = ORDERS[name]
    for _ in range(4):  # calls that come again take a shorter way
        seen, taken = packed(function)
        assert seen[: len(expected)] == expected and sorted(taken) == sorted(seen)


def test_compiled_functions_save_in_the_same_order():
    compiled = torch.compile(lambda a, b: (a * b) / (a + 3))
    for _ in range(3):
        assert packed(lambda: compiled(A, B))[0] == packed(lambda: (A * B) / (A + 3))[0]


def test_saved_values_have_their_names():
    node = (A * B).grad_fn
    assert node._saved_self is A and node._saved_other is B
    assert repr(node._raw_saved_self).startswith("<wengert._C._autograd.SavedTensor object at 0x")
