"""What one eager op costs beside its arithmetic: few elements, forward and backward.

    python benchmarks/eager_overhead.py                      this library alone
    python benchmarks/eager_overhead.py --peer PYTHON        beside torch, run by another Python

Each case runs in turn in either process, many times, and the least time counts: both see the same
machine. Times are in nanoseconds per op.
"""

import argparse
import json
import subprocess
import sys
import time


def cases(torch):
    """name: (function, how many ops it runs)."""
    return {**pointwise_cases(torch), **single_cases(torch), **training_cases(torch)}


def pointwise_cases(torch):
    """Calls on four elements, and chains of them."""
    a, b = (torch.ones(4, requires_grad=True) for _ in range(2))
    c, d = torch.ones(4), torch.ones(4)
    seed = torch.ones(4)

    def chain(step, count=100):
        x = a
        for _ in range(count):
            x = step(x)
        return x

    def fresh():
        a.grad = b.grad = None
        (a + b).backward(seed)

    return {
        "a + b, no grad": (lambda: c + d, 1),
        "a + b": (lambda: a + b, 1),
        "a * 2.0": (lambda: a * 2.0, 1),
        "tanh": (lambda: a.tanh(), 1),
        "add_, no grad": (lambda: c.add_(d), 1),
        "add_ with alpha": (lambda: c.add_(d, alpha=-0.1), 1),
        "zero_": (lambda: c.zero_(), 1),
        "(a + b).backward()": (lambda: (a + b).backward(seed), 1),
        "(a + b).backward(), grad None": (fresh, 1),
        "chain of +, forward": (lambda: chain(lambda x: x + b), 100),
        "chain of +, forward and backward": (lambda: chain(lambda x: x + b).backward(seed), 100),
        "chain of *, forward and backward": (lambda: chain(lambda x: x * b).backward(seed), 100),
        "chain of tanh, forward and backward": (
            lambda: chain(lambda x: x.tanh()).backward(seed), 100),
    }  # fmt: skip


def single_cases(torch):
    """Views, reductions, products and losses of small matrices."""
    F = torch.nn.functional
    x, y, labels = torch.ones(8, 16), torch.ones(8, 4), torch.zeros(8, dtype=torch.int64)
    weight, bias = torch.ones(4, 16, requires_grad=True), torch.ones(4, requires_grad=True)
    logits = torch.ones(8, 4, requires_grad=True)
    return {
        "sum": (lambda: logits.sum(), 1),
        "sum(1)": (lambda: logits.sum(1), 1),
        "mean": (lambda: logits.mean(), 1),
        "view": (lambda: logits.view(4, 8), 1),
        "x[0]": (lambda: logits[0], 1),
        "x[:, 1:3]": (lambda: logits[:, 1:3], 1),
        "t": (lambda: weight.t(), 1),
        "transpose": (lambda: weight.transpose(0, 1), 1),
        "chunk(2)": (lambda: logits.chunk(2, dim=1), 1),
        "cat": (lambda: torch.cat((logits, logits)), 1),
        "relu": (lambda: F.relu(logits), 1),
        "sigmoid, function": (lambda: torch.sigmoid(logits), 1),
        "mm": (lambda: x @ weight.t(), 1),
        "linear": (lambda: F.linear(x, weight, bias), 1),
        "linear and backward": (lambda: F.linear(x, weight, bias).sum().backward(), 1),
        "log_softmax": (lambda: F.log_softmax(logits, 1), 1),
        "cross_entropy": (lambda: F.cross_entropy(logits, labels), 1),
        "cross_entropy and backward": (lambda: F.cross_entropy(logits, labels).backward(), 1),
        "mse_loss": (lambda: F.mse_loss(logits, y), 1),
    }


def training_cases(torch):
    """Modules and optimizers of a small net."""
    F, nn, optim = torch.nn.functional, torch.nn, torch.optim
    x, y = torch.ones(8, 16), torch.ones(8, 4)

    def net():
        return nn.Sequential(nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 4))

    def stepping(kind, **options):
        parameters = list(net().parameters())
        for p in parameters:
            p.grad = torch.ones_like(p)
        return kind(parameters, lr=1e-3, **options).step

    model, layer = net(), nn.Linear(16, 4)
    optimizer = optim.SGD(model.parameters(), lr=1e-3)

    def train():
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()

    return {
        "nn.Linear": (lambda: layer(x), 1),
        "zero_grad": (lambda: optimizer.zero_grad(), 1),
        "SGD step, 4 parameters": (stepping(optim.SGD), 1),
        "SGD step with momentum": (stepping(optim.SGD, momentum=0.9), 1),
        "Adam step, 4 parameters": (stepping(optim.Adam), 1),
        "training step": (train, 1),
    }


def measure(function, ops, budget=0.02, batch=0.0002):
    """Nanoseconds per op: the least of batches that are short beside the scheduler's turns."""
    function()
    clock = time.perf_counter
    start = clock()
    function()
    count = max(1, int(batch / max(clock() - start, 1e-7)))
    best, end = float("inf"), clock() + budget
    while clock() < end:
        start = clock()
        for _ in range(count):
            function()
        best = min(best, clock() - start)
    return best / count / ops * 1e9


def serve(module):
    """Answers names of cases with times, a line each."""
    torch = __import__(module)
    if hasattr(torch, "set_num_threads"):
        torch.set_num_threads(1)
    table = cases(torch)
    print(json.dumps(list(table)), flush=True)
    for line in sys.stdin:
        print(measure(*table[line.strip()]), flush=True)


class Worker:
    """A process that measures cases when asked."""

    def __init__(self, python, module):
        self.process = subprocess.Popen([python, __file__, "--serve", module], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # fmt: skip
        self.names = json.loads(self.process.stdout.readline())

    def ask(self, name):
        self.process.stdin.write(name + "\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer", metavar="PYTHON", help="a Python that has torch")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--serve", metavar="MODULE", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve)
        return
    workers = [Worker(sys.executable, "wengert")]
    if options.peer:
        workers.append(Worker(options.peer, "torch"))
    heads = ["wengert", "torch", "ratio"] if options.peer else ["wengert"]
    print(f"{'ns per op':40s}" + "".join(f"{head:>10s}" for head in heads))
    for name in workers[0].names:
        rounds = [[worker.ask(name) for worker in workers] for _ in range(options.rounds)]
        best = [min(column) for column in zip(*rounds)]
        text = "".join(f"{value:10.0f}" for value in best)
        print(f"{name:40s}{text}" + (f"{best[0] / best[1]:10.2f}" if options.peer else ""))
    for worker in workers:
        worker.close()


if __name__ == "__main__":
    main()
