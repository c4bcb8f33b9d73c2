"""profile(): eager ops, backward ops and compiled kernels, by name and by line."""

import json
from pathlib import Path

import wengert as torch
from wengert.ir.bind import state


def test_eager_ops_and_their_derivatives():
    x = torch.ones(4, requires_grad=True)
    with torch.profile() as measured:
        y = (x.tanh() * 2).sum()
        y.backward()
    rows = {(row.name, row.kind): row.count for row in measured.by_op()}
    assert rows["tanh", "op"] == 1
    assert rows["sum", "op"] == 1
    assert any(kind == "backward" for _, kind in rows)
    assert state.top is state.bottom
    assert "profile" not in type(state.bottom).__name__
    lines = [row.name for row in measured.by_line()]
    assert any(name.rpartition(":")[0].endswith("test_profiling.py") for name in lines)


def test_compiled_functions_stay_compiled_and_show_kernels():
    function = torch.compile(lambda x: (x.exp() * 2).sum())
    x = torch.ones(100, requires_grad=True)
    function(x)
    with torch.profile() as measured:
        function(x).backward()
    kinds = [event.kind for event in measured.events]
    assert kinds.count("graph") == 2
    assert "kernel" in kinds
    assert not any(event.name == "exp" for event in measured.events)
    assert "replayed 1 times" in function.explain()
    before = len(measured.events)
    function(x)
    assert len(measured.events) == before


def test_functions_compiled_inside_the_block_are_measured():
    function = torch.compile(lambda x: x.exp() + 1)
    with torch.profile() as measured:
        function(torch.ones(3))
        function(torch.ones(3))
    assert [event.kind for event in measured.events].count("graph") == 1


def test_tables_and_chrome_traces(tmp_path):
    with torch.profile() as measured:
        torch.ones(3).exp().sin()
    text = str(measured)
    assert "exp" in text
    assert "share" in text
    path = measured.chrome(tmp_path / "trace.json")
    events = json.loads(Path(path).read_text())["traceEvents"]
    assert {"exp", "sin"} <= {event["name"] for event in events}
    assert all(event["ph"] == "X" and event["dur"] >= 0 for event in events)


def test_kernels_are_named_by_what_they_compute_and_have_rates():
    function = torch.compile(lambda x: (x.exp() * 2).tanh())
    x = torch.ones(1000)
    function(x)
    with torch.profile() as measured:
        function(x)
        function(x)
    (row,) = measured.by_kernel()
    assert row.name.endswith("/0 exp, mul, tanh")
    assert (row.count, row.bytes) == (2, 2 * 8000)
    assert row.flops > 0
    assert "GB/s" in measured.table("kernel") and "GB/s" in str(measured)


def test_an_error_ends_the_block_well():
    try:
        with torch.profile():
            raise KeyError
    except KeyError:
        pass
    assert state.top is state.bottom
    assert torch.ones(2).exp().shape == (2,)
