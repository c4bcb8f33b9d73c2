"""What nodes are called, those of gradients with history among them, and what they show."""

import pytest
import wengert as torch
import wengert.nn.functional as F


def leaf(*shape):
    count = torch.Size(shape).numel()
    return (torch.arange(count) / count - 0.3).view(shape).requires_grad_()


CASES = {
    "relu": (lambda x: F.relu(x), "Threshold"),
    "sigmoid": (lambda x: x.sigmoid(), "Sigmoid"),
    "tanh": (lambda x: x.tanh(), "Tanh"),
    "gelu": (lambda x: F.gelu(x), "Gelu"),
    "selu": (lambda x: F.selu(x), "Elu"),
    "relu6": (lambda x: F.relu6(x), "Hardtanh"),
    "softmax": (lambda x: x.softmax(-1), "SoftmaxBackwardData"),
    "log_softmax": (lambda x: x.log_softmax(-1), "LogSoftmaxBackwardData"),
    "layer_norm": (lambda x: F.layer_norm(x, (4,)), "NativeLayerNorm"),
    "mse_loss": (lambda x: F.mse_loss(x, x.detach() * 2), "MseLoss"),
    "select": (lambda x: x[0], "Select"),
    "slice": (lambda x: x[:, 1:], "Slice"),
    "max_pool2d": (lambda x: F.max_pool2d(x, 2), "MaxPool2DWithIndices"),
    "interpolate": (lambda x: F.interpolate(x, scale_factor=2), "UpsampleNearest2D"),
    "pad": (lambda x: F.pad(x, (1, 1, 1, 1), mode="reflect"), "ReflectionPad2D"),
    "embedding": (lambda x: F.embedding(torch.tensor([1]), x), "EmbeddingDense"),
}


@pytest.mark.parametrize("name", CASES)
def test_of_one_op(name):
    function, word = CASES[name]
    shape = (1, 1, 4, 4) if name in ("max_pool2d", "interpolate", "pad") else (2, 4)
    x = leaf(*shape)
    ending = "Backward0" if word.endswith("Data") else "BackwardBackward0"
    for _ in range(4):  # calls become familiar
        (grad,) = torch.autograd.grad((function(x) ** 2).sum(), x, create_graph=True)
        assert grad.grad_fn.name() == word + ending
        assert f"grad_fn=<{word}{ending}>" in repr(grad)


def test_of_both_gradients_of_a_convolution():
    x, w = leaf(1, 1, 4, 4), leaf(1, 1, 2, 2)
    for grad in torch.autograd.grad((F.conv2d(x, w) ** 2).sum(), (x, w), create_graph=True):
        assert grad.grad_fn.name() == "ConvolutionBackwardBackward0"


def test_named_nodes_are_gone_through_as_before():
    x = leaf(3)
    (first,) = torch.autograd.grad(x.tanh().sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x, create_graph=True)
    (third,) = torch.autograd.grad(second.sum(), x)
    t = x.detach().tanh()
    torch.testing.assert_close(second.detach(), -2 * t * (1 - t**2))
    torch.testing.assert_close(third, (1 - t**2) * (6 * t**2 - 2))


def test_a_gradient_that_is_passed_on_keeps_its_name():
    x = leaf(3)
    (grad,) = torch.autograd.grad((x.view(3) ** 2).sum(), x, create_graph=True)
    assert grad.grad_fn.name() == "ViewBackward0"


def test_saved_values_have_torchs_names():
    x, image, weight = leaf(2, 2), leaf(1, 2, 4, 4), leaf(3, 2, 3, 3)
    node = F.conv2d(image, weight, padding=1).grad_fn
    assert node._saved_input is image and node._saved_weight is weight
    assert node._saved_padding == node._saved_stride == (1, 1)
    node = F.max_pool2d(image, 2).grad_fn
    assert node._saved_kernel_size == (2, 2) and node._saved_result1.dtype is torch.int64
    node = F.layer_norm(x, (2,)).grad_fn
    assert node._saved_input is x and node._saved_result1.shape == (2, 1)
    for reduction, number in (("none", 0), ("mean", 1), ("sum", 2)):
        assert F.mse_loss(x, x.detach(), reduction=reduction).grad_fn._saved_reduction == number
    node = F.cross_entropy(x, torch.tensor([0, 1])).grad_fn
    assert node._saved_ignore_index == 2**64 - 100 and node._saved_target.tolist() == [0, 1]


def test_names_inside_compiled_functions_are_eagers():
    x, seen = leaf(3), []

    @torch.compile
    def look(x):
        (grad,) = torch.autograd.grad(x.tanh().relu().sum(), x, create_graph=True)
        seen.append(grad.grad_fn.name())
        return grad

    for _ in range(3):
        look(x)
    assert seen == ["TanhBackwardBackward0"] * 3


def test_nodes_without_a_derivative():
    node = torch.heaviside(leaf(3), torch.ones(3)).grad_fn
    assert node.name() == "torch::autograd::NotImplemented"


def test_saved_numbers_that_count_elements_are_unsigned():
    x = torch.ones(3, 3, requires_grad=True)
    assert x.tril(-1).grad_fn._saved_diagonal == 2**64 - 1
    assert x.triu(1).grad_fn._saved_diagonal == 1
    assert x.diagonal(-2).grad_fn._saved_offset == 2**64 - 2
    assert x.roll((-1, 1), (0, 1)).grad_fn._saved_shifts == (2**64 - 1, 1)
