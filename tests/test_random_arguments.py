"""Random programs that read, write and hand back arguments which share memory in random ways.

A program is a list of steps over two arguments and a tensor from outside. It is called several
times, each time with arguments that lie in memory in another way: apart, as one tensor, as views or
twins of each other or of the tensor from outside, with gaps, turned, expanded, with histories.
"""

import pytest
import wengert as torch
from alike import differences, facts, outcome
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from wengert import bodies

STEPS = (
    lambda a, b, w: a * b,
    lambda a, b, w: a * 2 + w,
    lambda a, b, w: b.sum(0) * w[0],
    lambda a, b, w: (a * w).sum() + b.detach().sum(),
    lambda a, b, w: a.reshape(-1),
    lambda a, b, w: b.t(),
    lambda a, b, w: b[1:] * 3,
    lambda a, b, w: a[0],
    lambda a, b, w: a.contiguous(),
    lambda a, b, w: a if a is b else b,
    lambda a, b, w: w if a is w else a.exp(),
    lambda a, b, w: a * 2 if b.sum() > 0 else b,
)
WRITES = (
    lambda a, b, w: a.add_(1),
    lambda a, b, w: b[0].mul_(2),
    lambda a, b, w: a.t()[1].copy_(b[0].clone()),
    lambda a, b, w: w.sub_(0.5),
    lambda a, b, w: b.detach().neg_(),
    lambda a, b, w: a.copy_(b.clone() * w),
    lambda a, b, w: b.data.add_(1),
)


def matrix(k):
    return ((torch.arange(9.0) * (k + 2)) % 7 - 3).view(3, 3)


ONE = {
    "plain": matrix,
    "turned": lambda k: matrix(k).t(),
    "gaps": lambda k: ((torch.arange(36.0) * (k + 2)) % 7 - 3).view(6, 6)[::2, ::2],
    "expanded": lambda k: matrix(k)[:1].expand(3, 3),
    "leaf": lambda k: matrix(k).requires_grad_(),
    "computed": lambda k: matrix(k).requires_grad_() * 1,
}
TWO = {
    "apart": lambda a, w: matrix(5),
    "same": lambda a, w: a,
    "view": lambda a, w: a.view_as(a),
    "turned": lambda a, w: a.t(),
    "detached": lambda a, w: a.detach(),
    "data": lambda a, w: a.data,
    "twin": lambda a, w: a.detach().requires_grad_(),
    "captured": lambda a, w: w,
    "captured_view": lambda a, w: w.detach().view(3, 3),
}
steps = st.lists(st.one_of(st.tuples(st.just(False), st.sampled_from(STEPS)),
                           st.tuples(st.just(True), st.sampled_from(WRITES))),
                 min_size=1, max_size=5)  # fmt: skip
calls = st.lists(
    st.tuples(st.sampled_from(sorted(ONE)), st.sampled_from(sorted(TWO))), min_size=2, max_size=4
)


def made(program, wrap):
    w = matrix(9)

    @wrap
    def body(a, b):
        results = [a, b]
        for writes, what in program:
            if writes:
                with torch.no_grad():
                    what(a, b, w)
            else:
                results.append(what(a, b, w))
        return results

    return body, w


def seen(body, w, one, two, k):
    """All that can be seen after a call and a backward from its results."""
    a = ONE[one](k)
    b = TWO[two](a, w)
    results = outcome(lambda: body(a, b))
    after = facts([a, b, w, results])
    went = None
    if isinstance(results, list):
        losses = [r.sum() for r in results if r.requires_grad]
        went = outcome(lambda: sum(losses).backward()) if losses else None
    return after, facts([a, b, w, went])


@pytest.mark.parametrize("backend", ["interpreter", "llvm"])
@settings(max_examples=40, deadline=None,
          suppress_health_check=[HealthCheck.function_scoped_fixture])  # fmt: skip
@given(program=steps, kinds=calls)
def test_arguments_that_share_memory(backend, program, kinds, monkeypatch):
    monkeypatch.setenv("WENGERT_STRICT", "1")
    monkeypatch.setenv("WENGERT_BACKEND", backend)
    eager, compiled = made(program, lambda f: f), made(program, torch.compile)
    for k in range(2):
        for kind in kinds * 2:
            for want, got in zip(seen(*eager, *kind, k), seen(*compiled, *kind, k)):
                found = differences(want, got)
                # of the base of a result that is all of it, the order in memory is not kept
                assert [line for line in found if " base: " not in line] == [], kind


@pytest.mark.parametrize("two", TWO)
def test_writes_that_wait_in_segments(two, monkeypatch):
    """What a view writes of an argument is seen by others that lie in its memory in another way."""
    monkeypatch.setattr(bodies, "WORTH", 0)  # small results wait, too
    for one in ONE:
        for writes in (WRITES[1], WRITES[2]):
            program = [(True, writes), (False, STEPS[0]), (True, WRITES[0]), (False, STEPS[2])]
            eager, compiled = made(program, lambda f: f), made(program, torch.compile)
            for k in range(3):
                for want, got in zip(seen(*eager, one, two, k), seen(*compiled, one, two, k)):
                    found = differences(want, got)
                    assert [line for line in found if " base: " not in line] == [], one
