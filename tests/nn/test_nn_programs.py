"""Training programs give the losses torch gives, from the same seed."""

import json

import pytest
import wengert as torch
from program_cases import PROGRAMS, RECORDS, losses

RECORDED = json.loads(RECORDS.read_text())


@pytest.mark.parametrize("name", PROGRAMS)
def test_losses_are_torchs(name):
    assert losses(torch, name) == pytest.approx(RECORDED[name], rel=1e-3, abs=1e-4)
