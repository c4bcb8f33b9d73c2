"""Half of the cases of a test, where tests with other arguments take the other half."""

import os


def half(cases, number):
    """Every second case, from the first or the second on; all with `WENGERT_OFTEN`."""
    cases = [*cases]
    return cases if "WENGERT_OFTEN" in os.environ else cases[number % 2 :: 2]
