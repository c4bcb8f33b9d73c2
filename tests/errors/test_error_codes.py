"""The catalogue of errors: each entry is a line that fails, and what it says.

In *.txt, a line of Python (see failing_words.py) is followed by an indented `Type: words`:
the error's type, and a phrase of its message that tells what was asked and which rule broke.
`python tests/errors/sites.py` lists the `raise` statements that no test reaches.
"""

from pathlib import Path

import failing_words
import pytest
import wengert as torch

HERE = Path(__file__).parent


def entries():
    for path in sorted(HERE.glob("*.txt")):
        lines = path.read_text(encoding="utf-8").splitlines()
        for number, (code, said) in enumerate(zip(lines[::2], lines[1::2], strict=True)):
            kind, _, words = said.strip().partition(":")
            yield pytest.param(code, kind, words.strip(), id=f"{path.stem}:{2 * number + 1}")


@pytest.fixture(autouse=True)
def settings_of_the_session():
    dtype, validated = torch.get_default_dtype(), torch.distributions.Distribution._validate_args
    yield
    torch.set_default_dtype(dtype)
    torch.distributions.Distribution.set_default_validate_args(validated)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("code", "kind", "words"), list(entries()))
def test_errors_say_what_is_wrong(code, kind, words):
    with pytest.raises(Exception) as caught:
        eval(code, vars(failing_words).copy())
    assert type(caught.value).__name__ == kind
    assert words in str(caught.value)


def test_the_catalogue_is_large():
    assert len(list(entries())) > 2000
