"""The catalogue of errors: each entry is a line that fails, and what it says.

In *.txt, a line of Python (see failing_words.py) is followed by an indented `Type: words`:
the error's type, and a phrase of its message that tells what was asked and which rule broke.
Every entry is also tested for the user's line, and for advice: words by which a message tells what
to do, what is wanted, what is forbidden, or which two things do not fit.
`python tests/errors/sites.py` lists the `raise` statements that no test reaches.
"""

import ast
import re
import sys
import traceback
from pathlib import Path
from typing import NamedTuple

import failing_words
import pytest
import sites
import wengert as torch

HERE = Path(__file__).parent
RAISES = {(str(sites.ROOT / site.path), site.line) for site in sites.all_sites()}
TO_DO = ("use|using|pass|call|calling|set|please|instead|consider|make|convert|return|leave|give|"
         "see|implement|define|clone|cloning|detach|wrap|install|allow|select|flatten|enter|specify|"
         "disable|check|forgot")  # fmt: skip
WANTED = ("must|should|expects?|expected|expecting|only|needs?|needed|require[sd]?|has to|have to|"
          "one of|valid|at least|at most|in range|supports?|supported|takes|either|between|"
          "allowed|restricted|may|stages|accepts?")  # fmt: skip
FORBIDDEN = ("cannot|can not|can't (?:assign|be)|contain|doesn't take|already|twice|missing|"
             "not (?:an?|compiled|found|divisible|exist|have)|mutually exclusive|unexpected|"
             "has no|repeated|multiple (?:times|values)|negative|empty|is None|zero")  # fmt: skip
UNFIT = ("mismatch|match|incompatible|not compatible|different|exceeds?|out of (?:range|bounds)|"
         "equal|too (?:small|large|many|few)|inconsistent|smaller than|more than|fewer than|"
         "invalid for input of size|multiply up|does not broadcast|not broadcastable")  # fmt: skip
ADVICE = re.compile(rf"(?i)\b(?:{TO_DO}|{WANTED}|{FORBIDDEN}|{UNFIT})\b|!=|< 0")


class Entry(NamedTuple):
    path: Path
    line: int
    code: str
    kind: str
    words: str

    def run(self):
        """Evaluates the line as if its file were a program of the user's."""
        tree = ast.increment_lineno(ast.parse(self.code, mode="eval"), self.line - 1)
        return eval(compile(tree, str(self.path), "eval"), vars(failing_words).copy())


def entries():
    for path in sorted(HERE.glob("*.txt")):
        lines = path.read_text(encoding="utf-8").splitlines()
        for number, (code, said) in enumerate(zip(lines[::2], lines[1::2], strict=True)):
            kind, _, words = said.strip().partition(":")
            yield Entry(path, 2 * number + 1, code, kind, words.strip())


@pytest.fixture(autouse=True)
def settings_of_the_session():
    dtype, validated = torch.get_default_dtype(), torch.distributions.Distribution._validate_args
    yield
    torch.set_default_dtype(dtype)
    torch.distributions.Distribution.set_default_validate_args(validated)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("entry", list(entries()), ids=lambda e: f"{e.path.stem}:{e.line}")
def test_errors_say_what_is_wrong_and_where(entry):
    with pytest.raises(Exception) as caught:
        entry.run()
    error = caught.value
    assert type(error).__name__ == entry.kind
    assert entry.words in str(error)
    frames = [(f.filename, f.lineno) for f in traceback.extract_tb(error.__traceback__)]
    assert (str(entry.path), entry.line) in frames
    if any(path.endswith("/tracer/engine.py") for path, _ in frames):
        assert names_a_line(error)
    if frames[-1] in RAISES:  # else Python and NumPy speak for themselves
        assert ADVICE.search(str(error))


def names_a_line(error):
    """Does an error of backward, whose traceback knows backward's line only, name a user's?"""
    said = "\n".join([str(error), *getattr(error, "__notes__", ())])
    return re.search(rf"{re.escape(str(HERE))}/\w+\.(txt|py):\d+", said) or sys.version_info < (
        3,
        11,
    )


def test_the_catalogue_is_large():
    assert len(list(entries())) > 2000
