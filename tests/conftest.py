"""For all tests: graphs are checked as they are made, and golden files can be blessed."""

import gc
import os

import pytest
import wengert as torch
from wengert.ir import passes
from wengert.ir.graph import Graph
from wengert.ir.op import TABLE
from wengert.ir.parser import parse

os.environ.setdefault("WENGERT_CHECK", "1")  # passes verify and interpret what they make
MOST_GRAPHS, MOST_NODES = 20, 300  # of one test that are printed and parsed
read_back = set()  # hashes of texts, each of which is parsed once


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config):
    """The whole suite is shared by two processes; what is named on the command line runs in one."""
    alone = config.args_source is config.ArgsSource.ARGS or config.option.usepdb
    shared = hasattr(config, "workerinput")  # this is one of the two
    if alone or shared or not config.pluginmanager.hasplugin("xdist"):
        return
    if config.option.numprocesses is None and not config.option.collectonly:
        config.option.numprocesses, config.option.dist = 2, "worksteal"


def pytest_collection_modifyitems(items):
    """Both processes must find the same tests: their names may not hold addresses."""
    assert not [item.nodeid for item in items if " at 0x" in item.nodeid]


def pytest_collection_finish():
    """The collector need not look at what is there before the tests: half a million objects, most
    of them pytest's, which take longer than all else where tests collect."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown():
    if taken_back:
        taken_back.clear()
        gc.collect()  # what is set aside while it waits for the collector stays for ever
        gc.freeze()


def noted_unfreeze(unfreeze=gc.unfreeze):
    taken_back.append(True)
    unfreeze()


taken_back = []  # has the library looked at those objects? See tracer/referrers.py
gc.unfreeze = noted_unfreeze


def pytest_addoption(parser):
    parser.addoption("--bless", action="store_true", help="rewrite golden files")


@pytest.fixture
def golden(request):
    """golden(path, text): the text is what the file holds; `--bless` makes it so."""

    def check(path, text):
        if request.config.getoption("--bless"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        assert text == path.read_text(), f"{path} differs; see it with pytest --bless and git diff"

    return check


@pytest.fixture(autouse=True)
def small_windows(monkeypatch):
    """Windows are looked at with small tensors."""
    monkeypatch.setattr("wengert.bodies.WORTH", 0)


@pytest.fixture(autouse=True)
def graphs_round_trip(monkeypatch):
    """Every valid graph that a test makes can be printed and read back.

    But those on the way to kernels: of codegen's own ops, or bound to generators.
    """
    made, make = [], Graph.__init__

    def remember(graph, *args, **kwargs):
        make(graph, *args, **kwargs)
        if len(made) < MOST_GRAPHS:
            made.append(graph)

    monkeypatch.setattr(Graph, "__init__", remember)
    yield
    monkeypatch.undo()
    nodes = 0
    for graph in made:
        nodes += len(graph.nodes)
        public = graph.name.isidentifier() and all(
            TABLE.get(node.op.name) is node.op is not TABLE["draw"] for node in graph.nodes
        )
        if nodes < MOST_NODES and public:
            text = graph.print()
            if hash(text) not in read_back:
                parsed = parse(text)
                assert parsed == graph
                assert parsed.print() == text
                read_back.add(hash(text))


@pytest.fixture
def compiles(monkeypatch):
    """The texts that reached LLVM."""
    from wengert.runtime import jit

    seen = []
    real = jit.compile_text

    def spy(text, *, options=jit.DEFAULT):
        seen.append(text)
        return real(text, options=options)

    monkeypatch.setattr(jit, "compile_text", spy)
    return seen


@pytest.fixture
def break_compiler(monkeypatch):
    """break_compiler(kind): from now on the pass "simplify" fails with this kind of error."""

    def break_it(kind):
        def broken(graph):
            raise kind("a rule went wrong")

        changed = tuple((n, broken if n == "simplify" else f) for n, f in passes.PASSES)
        monkeypatch.setattr(passes, "PASSES", changed)

    return break_it


@pytest.fixture
def failing_function(break_compiler):
    """A compiled function on which a pass failed."""
    break_compiler(ValueError)
    function = torch.compile(lambda x: (x.exp() + 1).sum())
    with pytest.warns(RuntimeWarning, match="W001"):
        function(torch.ones(3))
    return function
