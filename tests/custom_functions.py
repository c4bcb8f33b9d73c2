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
