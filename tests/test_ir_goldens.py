"""Golden dumps of three models at every stage: a change of the compiler shows as a diff.

`python -m pytest tests/test_ir_goldens.py --bless` writes them anew.
"""

import re
from pathlib import Path

import pytest
import wengert as torch
from ir_models import MODELS
from wengert import ir
from wengert.codegen.assemble import assemble
from wengert.codegen.target import Target
from wengert.ir.verify import verify
from wengert.runtime.launch import plan_memory

GOLDENS = Path(__file__).parent / "goldens"
GOLDEN_MODELS = ("mlp", "conv_net", "transformer_block")
GRAPHS = ("trace", "forward", "backward")


@pytest.fixture(scope="module", params=GOLDEN_MODELS)
def model(request):
    """A compiled model after its first call, and its name."""
    function, make = MODELS[request.param]
    compiled = torch.compile(function)
    compiled(*make())
    return request.param, compiled


def kernels_of(graph):
    """The kernels for one fixed target, so that the text is the same on every machine."""
    program = assemble(graph, Target())
    parts = []
    for number, step in enumerate(program.steps):
        info = program.kernels[step.kernel]
        reads = " ".join(program.buffers[b].name for b in step.reads)
        writes = " ".join(program.buffers[b].name for b in step.writes)
        parts.append(f"{number}: {info.kind} ({reads} -> {writes})\n{info.text}\n")
    text = "\n".join([*parts, str(plan_memory(program))])
    return re.sub(r" +@\S+:\d+$", "", text, flags=re.M) + "\n"


@pytest.mark.parametrize("stage", GRAPHS)
def test_graphs_are_as_they_were(model, stage, golden):
    name, compiled = model
    graph = verify(compiled.graph(stage))
    text = graph.print(places=False)
    golden(GOLDENS / name / f"{stage}.ir", text)
    assert ir.parse(text) == graph


def test_kernels_are_as_they_were(model, golden):
    name, compiled = model
    texts = [kernels_of(compiled.graph(stage)) for stage in ("forward", "backward")]
    golden(GOLDENS / name / "kernels.txt", "\n".join(texts))
