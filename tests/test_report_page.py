"""The report page in a real browser: what a person clicks, types and sees."""

import pytest
import wengert as torch
from browser import FOUND, Browser
from wengert import nn

pytestmark = pytest.mark.skipif(FOUND is None, reason="no browser is installed")


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    browser = Browser(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


@pytest.fixture
def show(browser, tmp_path):
    """Opens the report of a compiled function; at the end no fault and no request was seen."""
    path = tmp_path / "page.html"

    def show(function):
        function.report(path)
        browser.open(path)
        return browser

    yield show
    assert browser.faults() == []
    assert browser.addresses() == [path.as_uri()]


def attention(x, w):
    q, k, v = (x @ w).chunk(3, dim=-1)
    return nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).tanh()


def block():
    function = torch.compile(attention)
    x, w = torch.ones(1, 2, 8, 16), torch.ones(16, 48, requires_grad=True)
    function(x, w).sum().backward()
    return function


def training():
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
    optimizer = torch.optim.Adam(model.parameters())

    def step(x, y):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    function = torch.compile(step)
    for _ in range(2):
        function(torch.ones(4, 8), torch.tensor([0, 1, 2, 0]))
    return function


def loop():
    def doubles(x):
        y = x * 2
        while y.data.norm() < 1000:
            y = y * 2
        return y

    function = torch.compile(doubles)
    function(torch.ones(3, requires_grad=True)).sum().backward()
    return function


ALL = ["Python", "Trace", "Forward", "Backward", "Kernels", "Passes", "LLVM", "LLVM optimised",
       "Assembly", "Timeline", "Memory", "Guards", "Graph"]  # fmt: skip
LIT = """Object.fromEntries([...document.querySelectorAll(".pane:not([hidden])")].map(p =>
  [p.getAttribute("aria-label"), p.querySelectorAll(".strong, .weak, .derived").length]))"""


def first(pane, text):
    """The first line or box of a pane that holds a text, as JavaScript."""
    root = f"document.querySelector('section[aria-label=\"{pane}\"]')"
    return (
        f"[...{root}.querySelectorAll('.line, .box')].find(l => l.textContent.includes('{text}'))"
    )


def open_all(browser):
    for key in "1234567890-=g":
        name = ALL["1234567890-=g".index(key)]
        if not browser.run(f"Boolean(document.querySelector('section[aria-label=\"{name}\"]'))"):
            browser.press(key)
    shown = browser.run("[...document.querySelectorAll('.pane')].map(p => p.ariaLabel)")
    assert shown == ALL


@pytest.mark.parametrize("pane, text", [("Backward", "^tanh"), ("Python", "tanh()"),
                                        ("Trace", "= tanh"), ("Kernels", "= tanh"),
                                        ("Passes", "= tanh"), ("Graph", "tanh")])  # fmt: skip
def test_a_click_in_any_pane_lights_the_op_in_all(show, pane, text):
    browser = show(block())
    open_all(browser)
    browser.click(first(pane, text))
    lit = browser.run(LIT)
    assert lit.pop("Guards") == 0  # they belong to the call, not to an op
    assert all(lit.values()), lit


def test_a_line_of_assembly_lights_its_source(show):
    browser = show(block())
    browser.press("9")
    pane = "document.querySelector('section[aria-label=Assembly]')"
    browser.click(f"[...{pane}.querySelectorAll('.section > button[aria-expanded=false]')]"
                  ".find(b => b.textContent.includes('tanh'))")  # fmt: skip
    browser.click(f"[...{pane}.querySelectorAll('.line')].find(l => l.item.ops.length)")
    assert browser.run(LIT)["Python"] == 1


def test_a_derivative_tells_its_rule_and_what_was_saved(show):
    browser = show(block())
    browser.click(first("Backward", "^tanh"))
    told = browser.run("document.getElementById('details').textContent")
    assert "derivative of" in told and "tanh" in told
    assert "by the rule for self, which is given grad, result" in told
    assert "saved for backward" in told and "read by" in told
    assert "GB/s" in told and "vectorised" in told


def test_the_address_keeps_the_choice(show):
    browser = show(block())
    browser.click(first("Trace", "= tanh"))
    kept = browser.run("location.hash")
    assert browser.run("remembered().ops.length") == 1
    assert kept.startswith("#source,trace,backward,kernels/")


def test_search_opens_counts_and_steps(show):
    browser = show(block())
    browser.press("/", *"tanh")
    assert int(browser.run("document.getElementById('hits').textContent").split(" of ")[0]) > 3
    assert int(browser.run("document.getElementById('tab-asm').dataset.hits || 0")) >= 0
    assert int(browser.run("document.getElementById('tab-llvm').dataset.hits")) > 0
    browser.press("Enter", "Enter")
    assert browser.run("document.getElementById('hits').textContent").startswith("2/")
    assert browser.run("document.querySelectorAll('.line.current').length") == 1
    browser.press("Escape")
    assert browser.run("document.querySelectorAll('.hit').length") == 0


def test_keys_walk_lines_panes_and_passes(show):
    browser = show(training())
    browser.press("l", "j", "j")
    assert browser.run("chosen.item.pane.name") == "source"
    browser.press("l", "j")
    assert browser.run("chosen.item.pane.name") == "trace"
    browser.press("]", "]", "[")
    assert browser.run("document.querySelector('.scrub input').value") == "2"
    assert browser.run("document.querySelectorAll('.line.added').length") > 0
    browser.press("Escape")
    assert browser.run("chosen") is None
    browser.press("?")
    assert browser.run("document.getElementById('keys').open")


def test_dark_and_light(show):
    browser = show(training())
    before = browser.run("getComputedStyle(document.body).backgroundColor")
    browser.press("t")
    assert browser.run("getComputedStyle(document.body).backgroundColor") != before


def test_a_bar_of_the_timeline_is_a_choice(show):
    browser = show(training())
    browser.press("0")
    browser.click("document.querySelector('.bars button')")
    assert browser.run(LIT)["Kernels"] > 0
    assert browser.run("document.querySelectorAll('table tr.strong').length") == 1
    assert "GFLOP/s" in browser.run("document.querySelector('table').textContent")


def test_a_pane_can_be_made_wider(show):
    browser = show(training())
    width = "document.querySelector('.pane').getBoundingClientRect().width"
    before = browser.run(width)
    x = browser.run("document.querySelector('.grip').getBoundingClientRect().x") + 3
    for kind, at in (("mousePressed", x), ("mouseMoved", x + 120), ("mouseReleased", x + 120)):
        browser.call("Input.dispatchMouseEvent", type=kind, x=at, y=400, button="left",
                     buttons=1, clickCount=1)  # fmt: skip
    assert browser.run(width) == pytest.approx(before + 120, abs=2)


def test_segments_that_repeat_are_shown_once(show):
    browser = show(loop())
    heads = browser.run("[...document.querySelectorAll('section[aria-label=Trace] .section')]"
                        ".map(s => s.textContent)")  # fmt: skip
    assert sum("the same as segment 1" in head for head in heads) > 3
    browser.click(first("Python", "y = y * 2"))
    assert browser.run(LIT)["Kernels"] > 0


def test_a_failing_pass_is_what_the_page_opens_with(show, failing_function):
    browser = show(failing_function)
    text = browser.run("document.querySelector('section[aria-label=Passes]').textContent")
    assert "simplify FAILED" in text and "a rule went wrong" in text
    assert "a rule went wrong" in browser.run("document.getElementById('banner').textContent")
