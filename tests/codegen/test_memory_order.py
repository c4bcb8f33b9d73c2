"""The order of kernels: what is made of nothing takes memory only when it is needed."""

from wengert.codegen.cluster import Order


def sorted_kinds(made_of_nothing):
    """`zeros` are needed by `join` alone, which comes after a chain of three."""
    order = Order()
    zeros, *chain, join, last = (order.add(order.new(kind)) for kind in
                                 ("zeros", "first", "second", "third", "join", "last"))  # fmt: skip
    for before, after in zip([*chain, join], [*chain[1:], join, last]):
        order.depend(after, before)
    order.depend(join, zeros)
    found = order.sort(made_of_nothing)
    assert [c.position for c in found] == list(range(6))
    return [c.kind for c in found]


def test_zeros_are_filled_when_they_are_needed():
    found = sorted_kinds(lambda cluster: cluster.kind == "zeros")
    assert found == ["first", "second", "third", "zeros", "join", "last"]


def test_the_rest_is_made_in_the_order_of_the_graph():
    assert sorted_kinds(lambda cluster: False)[0] == "zeros"
