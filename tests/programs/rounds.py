# Loops and recursion that depend on values; closures; default and keyword arguments.
import wengert as torch

limits = {"norm": 1000.0}


def grow(x, factor=2.0, *, add=0.0):
    y = x * factor
    rounds = 0
    while y.data.norm() < limits["norm"]:
        y = y * factor + add
        rounds += 1
    return y, rounds


def down(x, depth):
    return x.sum() if depth == 0 else down(x * 0.5, depth - 1) + depth


def counter(step):
    total = torch.zeros(())

    def add(x):
        nonlocal step
        total.add_(x.sum() * step)
        step += 1
        return total.item()

    return add


add = counter(1)
for scale in (0.5, 3.0, 100.0, 0.01):
    x = torch.full((3,), scale, requires_grad=True)
    y, rounds = grow(x, add=scale)
    y.backward(torch.tensor([0.1, 1.0, 0.001]))
    print(rounds, y.detach().tolist(), x.grad.tolist())
    print(down(x.detach(), rounds % 4), round(add(x.detach()), 3))
limits["norm"] = 5.0
print(grow(torch.ones(3))[1], grow(torch.ones(3), 3.0)[1])
limits["norm"] = 1000.0
