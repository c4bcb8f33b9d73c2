"""Writes whose memory overlaps what is read, or itself: refused where torch refuses them."""

import pytest
import wengert as torch

MODES = {"recorded": torch.enable_grad, "plain": torch.no_grad}
WORDS = "single memory location"

# by method: its arguments; `t` is the tensor that lies across the written one
ALIGNED = {
    "add_": "t", "mul_": "t", "sub_": "t, alpha=2", "div_": "t", "pow_": "t", "lerp_": "t, 0.5",
    "addcmul_": "t, t", "addcdiv_": "t, t", "clamp_": "t, t", "atan2_": "t", "copy_": "t",
    "heaviside_": "t", "eq_": "t", "logical_and_": "t",
}  # fmt: skip
APART = {
    "index_add_": "0, i, t", "index_copy_": "0, i, t", "index_reduce_": "0, i, t, 'prod'",
    "index_put_": "(i,), t", "scatter_": "0, j, t", "scatter_add_": "0, j, t",
    "scatter_reduce_": "0, j, t, 'sum'", "put_": "j, t",
}  # fmt: skip
COPIED = {"addmm_": "t, t", "masked_scatter_": "x > 0, t", "tril_": ""}


def call(method, arguments, x, t):
    names = {"x": x, "t": t, "i": torch.arange(3), "j": torch.arange(9).view(3, 3) % 3}
    return eval(f"x.{method}({arguments})", names)


def across():
    """Three rows, and three rows that begin one later."""
    base = torch.ones(4, 3)
    return base[1:], base[:3]


def turned():
    square = torch.ones(3, 3)
    return square, square.T


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("made", [across, turned])
@pytest.mark.parametrize("method", [*ALIGNED, *APART])
def test_partial_overlap_is_refused(method, made, mode):
    x, t = made()
    before = x.tolist()
    with MODES[mode](), pytest.raises(RuntimeError, match=WORDS):
        call(method, (ALIGNED | APART)[method], x, t)
    assert x.tolist() == before and x._version == 0


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("method", [*ALIGNED, *APART, *COPIED])
def test_a_tensor_and_itself(method, mode):
    x = torch.ones(3, 3)
    with MODES[mode]():
        if method in APART:
            with pytest.raises(RuntimeError, match=WORDS):
                call(method, APART[method], x, x)
        else:
            assert call(method, (ALIGNED | COPIED)[method], x, x) is x


@pytest.mark.parametrize("method", COPIED)
def test_what_is_copied_first_may_overlap(method):
    call(method, COPIED[method], *across())


@pytest.mark.parametrize("mode", MODES)
def test_a_row_of_the_written_tensor(mode):
    x = torch.ones(3, 3)
    with MODES[mode](), pytest.raises(RuntimeError, match=WORDS):
        x.add_(x[0])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("method", [*ALIGNED, *APART])
def test_expanded_tensors_are_not_written(method, mode):
    x = torch.ones(3).expand(3, 3)
    with MODES[mode](), pytest.raises(RuntimeError, match=WORDS):
        call(method, (ALIGNED | APART)[method], x, torch.ones(3, 3))


def test_expanded_tensors_can_be_filled():
    base = torch.ones(3)
    assert base.expand(2, 3).fill_(4.0).tolist() == [[4.0] * 3] * 2
    assert base.tolist() == [4.0] * 3
    base.expand(2, 3).zero_()
    assert base.tolist() == [0.0] * 3 and base._version == 2


OUT = {
    "add": "t, t", "exp": "t", "lerp": "t, t, 0.5", "clamp": "t, 0, 1", "where": "t > 0, t, t",
    "cumsum": "t, 0", "index_select": "t, 0, i", "gather": "t, 0, j",
}  # fmt: skip


@pytest.mark.parametrize("name", [*OUT, "mm", "softmax"])
def test_out(name):
    arguments = OUT.get(name, "t, 0" if name == "softmax" else "t, t")
    names = {"torch": torch, "i": torch.arange(3), "j": torch.arange(9).view(3, 3) % 3}

    def run(t, out):
        return eval(f"torch.{name}({arguments}, out=out)", names | {"t": t, "out": out})

    with pytest.raises(RuntimeError, match=WORDS):
        run(torch.ones(3, 3), torch.ones(3).expand(3, 3))
    out, t = across()
    if name in OUT:
        with pytest.raises(RuntimeError, match=WORDS):
            run(t, out)
    else:
        assert run(t, out) is out
