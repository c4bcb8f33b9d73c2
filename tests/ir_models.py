"""Small models for the tests of graphs: functions of tensors and their arguments.

Weights are arguments like any others, so that a graph's inputs are the arguments in order.
"""

import wengert as torch

F = torch.nn.functional


def values(*shapes, scale=0.5, seed=0):
    """Tensors that require grad; the same at every call."""
    generator = torch.Generator().manual_seed(seed)
    return [(torch.randn(*shape, generator=generator) * scale).requires_grad_() for shape in shapes]


def mlp(x, w1, b1, w2, b2):
    """Two linear layers and a mean of squares."""
    hidden = F.linear(x, w1, b1).tanh()
    return F.linear(hidden, w2, b2).square().mean()


def conv_net(x, kernel, bias, weight):
    """Convolution, pooling, and cross entropy with fixed classes."""
    hidden = F.max_pool2d(F.conv2d(x, kernel, bias, padding=1).relu(), 2)
    scores = F.linear(hidden.flatten(1), weight)
    return F.cross_entropy(scores, torch.arange(2))


def lstm(x, w_ih, w_hh, bias):
    """A long short-term memory over three steps."""
    h = c = x.new_zeros((x.shape[1], w_hh.shape[1]))
    for step in x:
        gates = F.linear(step, w_ih, bias) + F.linear(h, w_hh)
        i, f, g, o = gates.chunk(4, 1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
    return h.sum()


def transformer_block(x, w_qkv, w_out, gain, shift, w_up, w_down):
    """Attention and a feed-forward layer, each after a layer norm, in residual form."""
    batch, length, width = x.shape
    normed = F.layer_norm(x, (width,), gain, shift)
    q, k, v = (
        part.view(batch, length, 2, width // 2).transpose(1, 2)
        for part in F.linear(normed, w_qkv).chunk(3, -1)
    )
    mixed = ((q @ k.transpose(-2, -1)) * 0.5).softmax(-1) @ v
    x = x + F.linear(mixed.transpose(1, 2).reshape(batch, length, width), w_out)
    return (x + F.linear(F.gelu(F.linear(F.layer_norm(x, (width,)), w_up)), w_down)).square().mean()


def physics_loss(x, w1, b1, w2):
    """How far a network is from solving u'' = -u: the derivatives are taken inside."""
    u = F.linear(F.linear(x, w1, b1).tanh(), w2)
    (slope,) = torch.autograd.grad(u.sum(), x, create_graph=True)
    (curvature,) = torch.autograd.grad(slope.sum(), x, create_graph=True)
    return (curvature + u).square().mean()


MODELS = {
    "mlp": (mlp, lambda: values((4, 3), (5, 3), (5,), (2, 5), (2,))),
    "conv_net": (conv_net, lambda: values((2, 1, 4, 4), (3, 1, 3, 3), (3,), (2, 12))),
    "lstm": (lstm, lambda: values((3, 2, 4), (12, 4), (12, 3), (12,))),
    "transformer_block": (
        transformer_block,
        lambda: values((2, 3, 4), (12, 4), (4, 4), (4,), (4,), (8, 4), (4, 8)),
    ),
    "physics_loss": (physics_loss, lambda: values((6, 1), (5, 1), (5,), (1, 5))),
}
