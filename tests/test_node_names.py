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


def test_saved_layouts_and_options():
    x, w, image = leaf(2, 3), leaf(3, 4), leaf(1, 4, 4, 4)
    node = (x @ w).grad_fn
    assert node._saved_self_sym_sizes == (2, 3) and node._saved_mat2_sym_strides == (4, 1)
    node = torch.addmm(x @ w, x, w.detach().t().contiguous().t()).grad_fn
    assert node._saved_mat1_sym_strides == (3, 1) and node._saved_mat2_sym_strides == (1, 3)
    assert x.mean().grad_fn._saved_self_sym_numel == x.mean(1).grad_fn._saved_self_sym_numel == 6
    assert x.expand(5, 2, 3).grad_fn._saved_self_sym_sizes == (2, 3)
    node = x.split(2, 1)[0].grad_fn
    assert (node._saved_split_size, node._saved_self_sym_sizes) == (2, (2, 3))
    assert x.split([1, 2], 1)[0].grad_fn._saved_split_sizes == (1, 2)
    node = x.std().grad_fn
    assert node._saved_dim is None and node._saved_keepdim is False
    assert x.var(1, keepdim=True).grad_fn._saved_dim == (1,)
    assert x.clamp_min(0.5).grad_fn._saved_min == x.clamp_max(0.5).grad_fn._saved_max == 0.5
    node = F.max_pool2d(image, 2, 3, 1).grad_fn
    assert (node._saved_stride, node._saved_padding) == ((3, 3), (1, 1))
    assert node._saved_ceil_mode is False
    assert F.pad(image, (1, 1, 1, 1), "reflect").grad_fn._saved_padding == (1, 1, 1, 1)


def test_saved_options_of_layers():
    image, weight = leaf(1, 4, 4, 4), leaf(4, 2, 3, 3)
    node = F.conv2d(image, weight.transpose(0, 1), stride=2, padding=1).grad_fn
    assert node._saved_transposed is False and node._saved_bias_sym_sizes_opt == (0,)
    assert node._saved_output_padding == (0, 0)
    node = F.conv_transpose2d(image, weight, leaf(2), stride=2, output_padding=1).grad_fn
    assert node._saved_transposed is True and node._saved_bias_sym_sizes_opt == (2,)
    assert node._saved_output_padding == (1, 1) and node._saved_input is image
    assert F.layer_norm(image, (4, 4)).grad_fn._saved_normalized_shape == (4, 4)
    node = F.group_norm(image, 2).grad_fn
    assert (node._saved_N, node._saved_C, node._saved_HxW, node._saved_group) == (1, 4, 16, 2)
    assert F.interpolate(image, 8, mode="bilinear").grad_fn._saved_output_size == (8, 8)
    assert F.pixel_shuffle(image, 2).grad_fn._saved_upscale_factor == 2


def test_rules_of_numbers_show_nothing():
    x = leaf(3)
    assert not [name for name in dir(x.fmod(2).grad_fn) if name.startswith("_saved")]
    y = leaf(3)
    assert x.fmod(y).grad_fn._saved_other is y
    assert not hasattr(x.scatter(0, torch.tensor([1]), x[:1]).grad_fn, "_saved_src_sym_sizes")


@pytest.mark.parametrize("loss", [F.mse_loss, F.smooth_l1_loss, F.huber_loss])
@pytest.mark.filterwarnings("ignore:Using a target size")
def test_losses_expand_only_what_is_smaller(loss):
    x, y = leaf(3), leaf(2, 3)
    names = [node.name() for node, _ in loss(x, y).grad_fn.next_functions]
    assert names == ["ExpandBackward0", "torch::autograd::AccumulateGrad"]
    grads = torch.autograd.grad(loss(x, y), (x, y))
    whole = torch.autograd.grad(loss(x.expand(2, 3), y), (x, y))
    assert all(map(torch.equal, grads, whole))
