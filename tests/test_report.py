"""The report page: its data ties all stages together, and a real browser can show it."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import wengert as torch
from wengert.ir import passes
from wengert.report import collect

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")


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
    assert any(mark == "+" for mark, _ in steps[1]["lines"])


def test_the_page_is_small_and_needs_no_network(tmp_path):
    path = compiled().report(tmp_path / "page.html")
    text = Path(path).read_text(encoding="utf-8")
    assert len(text) < 1_000_000
    assert not re.search(r"(https?:)?//\w+\.\w+/", text.replace("//www.w3.org/2000/svg", ""))
    assert not re.search(r"<(link|script|img)[^>]+(src|href)=\"(?!data:)", text)


def test_a_refused_function_has_a_report_that_says_why(tmp_path):
    @torch.compile
    def reads(x):
        return x * x.sum().item()

    reads(torch.ones(3))
    found = collect(reads)
    assert found["status"] == "eager"
    assert "item" in found["reason"]
    assert any(op["op"] == "sum" for op in found["ops"])
    assert reads.report(tmp_path / "page.html")


def test_a_failing_pass_is_where_the_report_opens(monkeypatch):
    def broken(graph):
        raise ValueError("a rule went wrong")

    changed = tuple((n, broken if n == "simplify" else f) for n, f in passes.PASSES)
    monkeypatch.setattr(passes, "PASSES", changed)
    function = torch.compile(lambda x: (x.exp() + 1).sum())
    with pytest.warns(RuntimeWarning, match="W001"):
        function(torch.ones(3))
    found = collect(function)
    assert found["status"] == "failed"
    assert "passes" in found["open"]
    failed = [s for g in found["passes"] for s in g["steps"] if s["error"]]
    assert [s["name"] for s in failed] == ["simplify"]


def test_a_function_never_called_has_a_report():
    assert collect(torch.compile(gelu_like))["reason"] == "not called yet"


DRIVER = """
<script>
addEventListener("error", e => document.body.dataset.fault = e.message);
(async () => {
  while (document.body.dataset.ready !== "yes") await new Promise(r => setTimeout(r, 20));
  for (const key of ["3", "9"]) document.body.dispatchEvent(
    new KeyboardEvent("keydown", {key, bubbles: true}));
  const rows = [...document.querySelectorAll("section[aria-label=Backward] .line")];
  rows.find(r => r.textContent.includes("^tanh")).click();
  const lit = {};
  for (const pane of document.querySelectorAll(".pane"))
    lit[pane.getAttribute("aria-label")] = pane.querySelectorAll(
      ".line.strong, .line.weak, .line.derived").length;
  const details = document.getElementById("details").textContent;
  document.getElementById("search").value = "tanh";
  search();
  document.body.dataset.result = JSON.stringify(
    {lit, details, hits: document.querySelectorAll(".line.hit").length});
})();
</script>
"""


@pytest.mark.skipif(BROWSER is None, reason="no browser is installed")
def test_a_click_lights_the_op_in_every_pane(tmp_path):
    path = tmp_path / "page.html"
    compiled().report(path)
    path.write_text(path.read_text(encoding="utf-8") + DRIVER, encoding="utf-8")
    done = subprocess.run(
        [BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=5000",
         f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", path.as_uri()],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    found = re.search(r'data-result="([^"]*)"', done.stdout)
    assert "data-fault" not in done.stdout.split("<script")[0]
    assert found, done.stderr[-2000:]
    result = json.loads(found[1].replace("&quot;", '"').replace("&amp;", "&"))
    assert all(result["lit"][p] for p in ("Python", "Trace", "Forward", "Backward", "Kernels"))
    assert result["lit"]["Assembly"] > 0
    assert "derivative of" in result["details"]
    assert result["hits"] > 3
