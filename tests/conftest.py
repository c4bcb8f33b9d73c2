"""For all tests: compiled graphs are checked, and golden files can be blessed."""

import os

import pytest

# set before wengert is imported: passes verify and interpret what they make
os.environ.setdefault("WENGERT_CHECK", "1")


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
