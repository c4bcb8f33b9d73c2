"""Custom Functions that several tests use."""

import wengert as torch


class Twice(torch.autograd.Function):
    """Keeps nothing."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


class Square(torch.autograd.Function):
    """Keeps what it is given."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        return grad * 2 * ctx.saved_tensors[0]
