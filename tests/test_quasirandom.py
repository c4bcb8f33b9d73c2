"""`torch.quasirandom`: torch 2.13's sequences."""

import pytest
import wengert as torch
from wengert.quasirandom import SobolEngine


def test_points():
    engine = SobolEngine(5)
    assert engine.draw(3).tolist() == [[0] * 5, [0.5] * 5, [0.75, 0.25, 0.25, 0.25, 0.75]]
    assert engine.draw(2)[1].tolist() == [0.375, 0.375, 0.625, 0.875, 0.375]
    assert engine.fast_forward(4).draw().tolist() == [[0.6875, 0.8125, 0.4375, 0.9375, 0.0625]]
    assert engine.num_generated == 10 and engine.reset().draw().tolist() == [[0.0] * 5]
    assert repr(SobolEngine(3, scramble=True, seed=4)) == (
        "SobolEngine(dimension=3, scramble=True, seed=4)"
    )


def test_scrambled_points():
    engine = SobolEngine(3, scramble=True, seed=42)
    points = engine.draw(2)
    expected = torch.tensor([[0.9975, 0.1044, 0.8230], [0.2227, 0.7370, 0.4476]])
    torch.testing.assert_close(points, expected, atol=5e-5, rtol=0)
    assert engine.draw_base2(1).shape == (2, 3)
    assert engine.draw(dtype=torch.float64).dtype is torch.float64
    torch.manual_seed(3)
    first = SobolEngine(7, scramble=True).draw()[0, :3]
    torch.testing.assert_close(first, torch.tensor([0.0685, 0.2245, 0.6992]), atol=5e-5, rtol=0)
    torch.testing.assert_close(torch.rand(2), torch.tensor([0.6708, 0.2168]), atol=5e-5, rtol=0)


def test_all_dimensions():
    points = SobolEngine(SobolEngine.MAXDIM).draw(8)
    assert points.double().sum().item() == 74203.5
    assert points[4, -3:].tolist() == [0.375, 0.875, 0.625]
    # every dimension takes each eighth once
    assert torch.equal((points * 8).sort(0)[0], torch.arange(8.0)[:, None].expand(8, 21201))


def test_pieces_are_the_whole():
    whole = SobolEngine(4, scramble=True, seed=0).draw(37)
    engine = SobolEngine(4, scramble=True, seed=0)
    parts = [engine.draw(n) for n in (1, 1, 6, 29)]
    assert torch.equal(torch.cat(parts), whole)
    skipped = SobolEngine(4, scramble=True, seed=0).fast_forward(30).draw(7)
    assert torch.equal(skipped, whole[30:])


def test_out_and_errors():
    out = torch.empty(0)
    assert SobolEngine(2).draw(2, out=out) is out and out.shape == (2, 2)
    with pytest.raises(ValueError, match=r"for SobolEngine is \[1, 21201\]"):
        SobolEngine(0)
    engine = SobolEngine(1)
    engine.draw()
    with pytest.raises(ValueError, match=r"n=1\+2\*\*3=9"):
        engine.draw_base2(3)
