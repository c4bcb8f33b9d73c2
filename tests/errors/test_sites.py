"""The rules by which a `raise` need not be reached by a test; see sites.py."""

import pytest
import sites
import wengert as torch

SITES = sites.all_sites()


@pytest.mark.parametrize("name", sites.RULES)
def test_rules_say_something_of_few_sites(name):
    found = [site for site in SITES if sites.RULES[name](site)]
    assert 0 < len(found) < len(SITES) / 10


def test_control_flow_is_caught():
    assert {"Refused", "Unbindable", "Unwatchable"} <= sites.control_flow()
    assert not any(name.endswith("Error") for name in sites.control_flow())


@pytest.mark.parametrize("fault", sites.COMPILERS_FAULTS)
def test_faults_of_the_compiler_leave_results_right(fault, break_compiler):
    from wengert.ir.verify import VerifyError
    from wengert.runtime.jit import JitError
    from wengert.runtime.mapping import LinkError

    kind = {e.__name__: e for e in (VerifyError, JitError, LinkError)}[fault]
    break_compiler(kind)
    function = torch.compile(lambda x: (x.exp() + 1).sum())
    with pytest.warns(RuntimeWarning, match="W001"):
        assert function(torch.zeros(3)) == 6.0
