"""Tensors print as torch prints them, recorded and live."""

import json
import random

import numpy as np
import pytest
from printing_cases import ALL, RECORDS, Case, all_cases, by_torch, by_us
from wengert.tracer import printing
from wengert.tracer.printing import format_parameter, format_tensor

CASES = all_cases()
RECORDED = json.loads(RECORDS.read_text())


@pytest.mark.parametrize("name", CASES)
def test_prints_as_recorded(name):
    assert by_us(CASES[name]) == RECORDED[name]


def test_every_record_has_a_case():
    assert RECORDED.keys() == CASES.keys()


def random_case(source):
    shape = [source.choice([1, 2, 3, 5, 8, 20, 0]) for _ in range(source.randrange(4))]
    dtype = source.choice(ALL)
    rng = np.random.default_rng(source.randrange(2**32))
    values = rng.standard_normal(shape)
    if dtype in ("float32", "float64", "bfloat16", "complex64"):
        values = values * 10.0 ** source.choice([-9, -4, -1, 0, 2, 5, 9])
        odd = rng.choice([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, 2.0], shape)
        values = np.where(rng.random(shape) < source.choice([0, 0.1, 1]), odd, values)
    if dtype.startswith("complex"):
        values = values + 1j * rng.standard_normal(shape)
    if dtype == "uint8":
        values = np.abs(values)
    options = {
        "precision": source.choice([0, 2, 4, 7]),
        "threshold": source.choice([0, 5, 50, float("inf")]),
        "edgeitems": source.choice([0, 1, 2, 3]),
        "linewidth": source.choice([10, 30, 80, 120]),
        "profile": source.choice(["default", "short", "full"]),
        "sci_mode": source.choice([True, False]),
    }
    options = {name: value for name, value in options.items() if source.random() < 0.25}
    differentiable = dtype not in ALL[:6]
    history = source.choice(["", "leaf", "node", "parameter"]) if differentiable else ""
    return Case(values, dtype, options, history, source.choice(["float32", "float64"]))


def test_prints_as_torch_does():
    torch = pytest.importorskip("torch")
    for name, case in CASES.items():
        assert by_us(case) == by_torch(torch, case), name
    source = random.Random(0)
    for _ in range(1500):
        case = random_case(source)
        assert by_us(case) == by_torch(torch, case), case


def test_subclasses_devices_and_tangents():
    assert format_tensor(np.arange(2), class_name="Box") == "Box([0, 1])"
    meta = format_tensor(np.empty((2, 3), np.int64), device="meta")
    assert meta == "tensor(..., device='meta', size=(2, 3), dtype=torch.int64)"
    text = format_tensor(np.ones(1, np.float32), tangent="tensor([2.])")
    assert text == "tensor([1.], tangent=tensor([2.]))"
    assert format_parameter(np.ones(1, np.float32)) == (
        "Parameter containing:\ntensor([1.], requires_grad=True)"
    )


def test_options_are_kept_and_restored():
    before = printing.get_printoptions()
    with printing.printoptions(precision=2, sci_mode=True):
        assert format_tensor(np.float32([1.5])) == "tensor([1.50e+00])"
        printing.set_printoptions(profile="short", linewidth=50)
        assert printing.get_printoptions() == {
            "precision": 2,
            "threshold": 1000,
            "edgeitems": 2,
            "linewidth": 50,
            "sci_mode": None,
        }
    assert printing.get_printoptions() == before
    assert printing.PROFILES["short"] == printing.PrintOptions(precision=2, edgeitems=2)
