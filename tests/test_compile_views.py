"""Views inside and out of compiled functions keep their base alive; that is no leak."""

import wengert as torch


def test_a_view_of_a_computed_tensor_is_returned_and_replayed():
    function = torch.compile(lambda x: (x + 1).view(-1))
    x = torch.ones(2, 2, requires_grad=True)
    for _ in range(3):
        y = function(x)
    assert "replayed 2 times" in function.explain()
    y.sum().backward()
    assert x.grad.tolist() == [[1, 1], [1, 1]]


def test_a_view_that_backward_saved_is_no_leak():
    layer = torch.nn.Linear(4, 4)
    function = torch.compile(lambda x: layer(x + 1))
    for _ in range(3):
        function(torch.ones(2, 3, 4))
    assert "replayed 2 times" in function.explain()
