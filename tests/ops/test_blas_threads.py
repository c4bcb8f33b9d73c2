"""Products of middle size run on one thread of NumPy's BLAS, which keeps its setting."""

import numpy as np
import pytest
from wengert.ir.ops import blas


@pytest.mark.parametrize("shapes", [((30, 40), (40, 50)), ((100, 90), (90, 80)), ((200, 90), (90,)),
                                    ((4, 60, 90), (4, 90, 50)), ((1, 300), (300, 70))])  # fmt: skip
def test_values_and_threads(shapes, monkeypatch):
    left, right = (np.random.default_rng(0).standard_normal(s) for s in shapes)
    setting = []
    monkeypatch.setattr(blas, "_thread_setters", lambda: (lambda: 3, setting.append))
    np.testing.assert_allclose(blas.matmul(left, right), left @ right, rtol=1e-12)
    assert setting == ([] if shapes[0] == (30, 40) else [1, 3])


def test_an_error_leaves_the_setting(monkeypatch):
    setting = []
    monkeypatch.setattr(blas, "_thread_setters", lambda: (lambda: 3, setting.append))
    with pytest.raises(ValueError):
        blas.matmul(np.zeros((100, 90)), np.zeros((91, 90)))
    assert setting == [1, 3]


def test_another_blas_is_left_alone(monkeypatch):
    monkeypatch.setattr(blas, "_thread_setters", lambda: None)
    assert blas.matmul(np.ones((100, 90)), np.ones((90, 80)))[3, 4] == 90
