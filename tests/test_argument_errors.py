"""Calls that cannot be made raise TypeError in the words of torch's argument parser."""

import pytest
import wengert as torch
from wengert.ir.refusals import OVERLOADS

X = torch.ones(2, 3)

MISSING = "missing 1 required positional arguments: "
INVALID = r"\(\) received an invalid combination of arguments - got "


@pytest.mark.parametrize(
    ("call", "words"),
    [
        # one signature: what is wrong is said
        (lambda: torch.mul(X), "^mul.. " + MISSING + '"other"'),
        (lambda: torch.cat(), "^cat.. " + MISSING + '"tensors"'),
        (lambda: torch.matmul("s"), "^matmul.*'input' .position 1. must be Tensor, not str"),
        (lambda: torch.softmax(X), "^softmax.. " + MISSING + '"dim"'),
        (lambda: torch.softmax(X, "s"), "'dim' .position 2. must be int, not str"),
        (lambda: torch.gather(X, "s"), "'dim' .position 2. must be int, not str"),
        (lambda: torch.matmul(X, foo=1), "^matmul.. " + MISSING + '"other"'),
        (lambda: torch.exp(X, X), "^exp.. takes 1 positional argument but 2 were given"),
        (lambda: torch.exp(X, foo=1), "^exp.. got an unexpected keyword argument 'foo'"),
        (lambda: torch.argmax(X, 1, True, 1), "takes from 1 to 3 positional arguments but 4"),
        (lambda: X.mul(), "^mul.. " + MISSING + '"other"'),
        (lambda: X.gather(0), "^gather.. " + MISSING + '"index"'),
        (lambda: X.mul_(), "^mul_.. " + MISSING + '"other"'),
        # several: the combination is invalid, unless the number of arguments leaves one of them
        (lambda: torch.add(X), "^add" + INVALID + r"\(Tensor\), but expected"),
        (lambda: torch.add(X, foo=1), "^add.. " + MISSING + '"other"'),
        (lambda: torch.add(X, X, foo=1), "^add.. got an unexpected keyword argument 'foo'"),
        (lambda: torch.pow(), "^pow" + INVALID + r"\(\)"),
        (lambda: torch.eq(X, "s"), "^eq" + INVALID + r"\(Tensor, str\)"),
        (lambda: torch.sum(X, foo=1), "^sum" + INVALID + r"\(Tensor, foo=int\)"),
        (lambda: torch.sum(X, "s"), "^sum" + INVALID + r"\(Tensor, str\)"),
        (lambda: torch.sum(X, 0, "s"), "^sum.*'keepdim' .position 3. must be bool, not str"),
        (lambda: torch.mean(X, (0, 1), 1, 2, 3, 4), r"got \(Tensor, tuple, int, int, int, int\)"),
        (lambda: X.pow(), "^pow" + INVALID + r"\(\)"),
        (lambda: X.eq_("s"), "^eq_" + INVALID + r"\(str\)"),
        (lambda: X.div_(), "^div_" + INVALID + r"\(\)"),
        (lambda: X.lerp([1.0], 2), "^lerp" + INVALID + r"\(list, int\)"),
    ],
)
def test_torchs_words(call, words):
    with pytest.raises(TypeError, match=words):
        call()


def test_what_has_several_signatures_is_public():
    unknown = [name for name in OVERLOADS if not hasattr(torch, name)]
    assert unknown == []
