"""The report page: its data ties all stages together, and a real browser can show it."""

import re
from pathlib import Path

import pytest
import wengert as torch
from wengert.report import collect


def gelu_like(x, w):
    h = torch.tanh(x @ w)
    return (h * x).sum()


def compiled():
    function = torch.compile(gelu_like)
    function(torch.ones(16, 16), torch.ones(16, 16, requires_grad=True)).backward()
    return function


@pytest.fixture(scope="module")
def shown():
    return collect(compiled())


def op_named(shown, name):
    return next(k for k, op in enumerate(shown["ops"]) if op["op"] == name)


def test_every_stage_shows_the_same_op(shown):
    tanh = op_named(shown, "tanh")
    for pane in ("trace", "forward", "backward", "kernels"):
        lines = [line for group in shown[pane] for line in group["lines"]]
        assert any(tanh in line[2] for line in lines), pane
    source = [line for file in shown["source"] for line in file["lines"] if tanh in line[2]]
    assert [line[1].strip() for line in source] == ["h = torch.tanh(x @ w)"]


def test_backward_lines_name_rule_and_saved_values(shown):
    tanh = op_named(shown, "tanh")
    lines = [line for line in shown["backward"][0]["lines"] if tanh in line[2]]
    assert any("^tanh" in line[0] for line in lines)
    assert shown["rules"]["tanh"][0][:2] == ["self", "grad, result"]
    (saved,) = shown["saved"]
    assert any(row[6] == "tanh" or tanh in row[4] for row in saved["rows"])


def test_assembly_lines_belong_to_instructions(shown):
    kernel = next(k for k in shown["kernels"] if any(" tanh " in line[0] for line in k["lines"]))
    module = next(m for m in shown["modules"] if m["name"] == kernel["symbol"])
    marks = {mark for _, mark in module["asm"] if mark is not None}
    number = next(line[3] for line in kernel["lines"] if " tanh " in line[0])
    assert number in marks
    assert kernel["ns"] > 0
    assert kernel["note"]


def test_passes_are_shown_with_their_changes(shown):
    steps = shown["passes"][0]["steps"]
    assert steps[0]["name"] == "as it was"
    assert any(mark == "+" for mark, _, _ in steps[1]["lines"])
    tanh = op_named(shown, "tanh")
    assert any(tanh in ops for _, text, ops in steps[1]["lines"] if "= tanh" in text)


def test_every_op_that_computes_belongs_to_a_kernel(shown):
    """Also a product whose result is only transposed, which runs under the transpose's name."""
    for unit, group in enumerate((*shown["forward"], *shown["backward"])):
        claimed = {n for k in shown["kernels"] if k["unit"] == unit for n in k["nodes"]}
        nodes = {line[1][0] for line in group["lines"] if re.search(r"= (mm|tanh|mul) ", line[0])}
        assert nodes <= claimed
    assert shown["kernels"][0]["title"].startswith("mm")


def test_pictures_know_their_ops(shown):
    tanh = op_named(shown, "tanh")
    titles = [picture["title"] for picture in shown["pictures"]]
    assert titles == ["trace", "forward", "backward"]
    for picture in shown["pictures"]:
        lit = [box for box in picture["boxes"] if tanh in box[7]]
        assert lit and all(0 <= box[0] <= picture["width"] for box in lit)


def many_ops(x):
    for k in range(70):
        x = (x * (k + 1)).tanh() + x.sin() / (x.cos() + 3) - x.sum(0, keepdim=True)
    return x


def test_the_page_of_500_ops_is_small_and_needs_no_network(tmp_path):
    function = torch.compile(many_ops)
    function(torch.ones(8, 8, requires_grad=True)).sum().backward()
    assert len(function.graph("trace").nodes) > 500
    text = Path(function.report(tmp_path / "page.html")).read_text(encoding="utf-8")
    assert len(text) < 1_000_000
    assert not re.search(r"(https?:)?//\w+\.\w+/", text.replace("//www.w3.org/2000/svg", ""))
    assert not re.search(r"<(link|script|img)[^>]+(src|href)=\"(?!data:)", text)


def test_a_refused_function_has_a_report_that_says_why(tmp_path):
    @torch.compile
    def reads(x):
        return x * abs(x.sum().item())

    reads(torch.ones(3))
    found = collect(reads)
    assert found["status"] == "eager"
    assert "item" in found["reason"]
    assert any(op["op"] == "sum" for op in found["ops"])
    assert reads.report(tmp_path / "page.html")


def test_a_failing_pass_is_where_the_report_opens(failing_function):
    found = collect(failing_function)
    assert found["status"] == "failed"
    assert "passes" in found["open"]
    failed = [s for g in found["passes"] for s in g["steps"] if s["error"]]
    assert [s["name"] for s in failed] == ["simplify"]


def test_a_function_never_called_has_a_report():
    reason = collect(torch.compile(gelu_like))["reason"]
    assert reason == "no call of it has been compiled yet"


@pytest.mark.parametrize("function, arguments", [
    (lambda: torch.ones(3), ()),
    (lambda x: x, (torch.ones(3),)),
    (lambda x: x.add_(1).mul_(2), (torch.ones(3),)),
    (lambda x: x.exp().sum(), (torch.ones(0, 3),)),
    (lambda x: torch.linalg.svd(x)[1], (torch.eye(3),)),
    (lambda x: torch.nn.functional.dropout(x), (torch.ones(9),)),
], ids=["no arguments", "nothing to do", "writes", "empty", "in Python", "random"])  # fmt: skip
def test_odd_functions_have_reports(function, arguments, tmp_path):
    compiled = torch.compile(function)
    compiled(*arguments)
    assert collect(compiled)["status"] == "compiled"
    assert Path(compiled.report(tmp_path / "page.html")).exists()
