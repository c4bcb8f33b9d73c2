"""Layers print, start, compute and differentiate as torch recorded them."""

import json

import pytest
import wengert as torch
from layer_cases import LAYERS, RECORDS, run

RECORDED = json.loads(RECORDS.read_text())


def close(found, expected, where):
    if isinstance(expected, dict):
        assert list(found) == list(expected), where
        for key in expected:
            close(found[key], expected[key], f"{where} {key}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), where
        for k, item in enumerate(expected):
            close(found[k], item, f"{where}[{k}]")
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-4, abs=1e-3), where
    else:
        assert found == expected, where


@pytest.mark.parametrize("text", LAYERS)
def test_layer_is_torchs(text):
    close(run(torch, text), RECORDED[text], text)
