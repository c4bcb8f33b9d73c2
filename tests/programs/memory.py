# In-place writes, views, aliasing results, errors in the middle of mutation, containers.
import dataclasses

import wengert as torch


@dataclasses.dataclass
class Batch:
    x: torch.Tensor
    scale: float = 1.0
    names: tuple = ()


def halves(x):
    left, right = x[: len(x) // 2], x[len(x) // 2 :]
    left.mul_(2)
    right += left
    return left, x.view(-1, 2), x


def pick(table, index, log):
    table.add_(1)
    value = table[index]
    log["picked"] = value
    table.mul_(2)
    return value


def scaled(batch):
    return Batch(batch.x * batch.scale, batch.scale * 2, (*batch.names, "scaled"))


def generated(xs):
    return [x.sum() for x in (t * 2 for t in xs)]


for k in range(3):
    x = torch.arange(4.0) + k
    left, pairs, same = halves(x)
    pairs[0, 0] = 100.0
    print(left.tolist(), x.tolist(), same is x, x._version)
    table, log = torch.arange(3.0), {}
    for index in (0, 2, 5):
        try:
            print(pick(table, torch.tensor([index]), log).tolist(), log)
        except IndexError as error:
            print("IndexError", table.tolist(), table._version, "picked" in log, bool(str(error)))
    print(dataclasses.astuple(scaled(Batch(torch.ones(2), k + 0.5, ("one",)))))
    print(generated([torch.ones(2), torch.ones(3) * k]))
