"""Every promise in docs/contract.md names tests that exist."""

import re
from pathlib import Path

HERE = Path(__file__).parent
ROWS = [line.strip("|").split("|") for line in (HERE.parent / "docs/contract.md").read_text()
        .splitlines() if line.startswith("| ")][1:]  # fmt: skip


def test_promises_have_tests():
    named = [name for _, tests in ROWS for name in tests.split()]
    assert len(ROWS) > 30 and all(tests.split() for _, tests in ROWS)
    missing = [name for name in named if not exists(*name.rsplit(".", 1))]
    assert not missing


def exists(module: str, name: str) -> bool:
    """A test function of a file, or one of its scenarios."""
    file = HERE / f"{module}.py"
    if not file.exists():
        return False
    text = file.read_text()
    is_test = name.startswith("test_") and f"\ndef {name}(" in text
    return is_test or re.search(rf"@scenario\ndef {name}\(", text) is not None
