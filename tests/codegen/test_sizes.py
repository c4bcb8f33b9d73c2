"""Sizes are run-time words: a new batch size finds the kernels of the last one."""

import re

import pytest
import wengert as torch


@pytest.mark.parametrize("function", [
    lambda x: x.softmax(1).mean(0),
    lambda x: (x - x.mean()).tanh() / x.shape[0],
    lambda x: (x.sum(0), x.cumsum(0).amax(1), x.relu().sum()),
])  # fmt: skip
def test_kernels_do_not_depend_on_the_size_of_a_batch(function):
    found = []
    for rows in (601, 703):  # large enough for all to be done in one way
        compiled = torch.compile(function, dynamic=False)
        for _ in range(2):
            compiled(torch.ones(rows, 37))
        found.append(set(re.findall(r"\bk[0-9a-f]{20}\b", compiled.dump("kernels"))))
    assert found[0] == found[1] and found[0]
