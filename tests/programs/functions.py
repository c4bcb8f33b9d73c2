# Custom Functions with and without effects, hooks, saved tensors, checkpoints.
import wengert as torch
from wengert.autograd import Function
from wengert.utils.checkpoint import checkpoint

calls = []


class Cube(Function):
    @staticmethod
    def forward(ctx, x, tag):
        ctx.save_for_backward(x)
        ctx.tag = tag
        return x**3

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        calls.append(ctx.tag)
        return 3 * x * x * grad, None


class Scale(Function):
    @staticmethod
    def forward(ctx, x, k):
        ctx.k = k
        return x * k

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.k, None


def cubed(x, tag):
    return Cube.apply(Scale.apply(x, 2.0), tag).sum()


def hooked(x):
    y = x.exp()
    y.register_hook(lambda g: calls.append(round(g.sum().item(), 3)))
    return (y * y).sum()


def block(x):
    return torch.tanh(x) * x


def penalty(x):
    y = checkpoint(block, x, use_reentrant=False).sum()
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    return (g * g).sum()


for k, tag in enumerate("abab"):
    x = torch.tensor([0.5, -1.0, float(k)], requires_grad=True)
    cubed(x, tag).backward()
    hooked(x).backward()
    penalty(x).backward()
    print([round(g, 3) for g in x.grad.tolist()], calls)
calls.clear()
