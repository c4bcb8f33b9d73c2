"""A small training whose result is one number: the hash of all weights after some steps."""

import hashlib

import wengert as torch
from wengert import nn


def model():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(64, 128), nn.LayerNorm(128), nn.GELU(), nn.Dropout(0.1),
        nn.Linear(128, 64), nn.Tanh(), nn.Linear(64, 10),
    )  # fmt: skip


def train(steps=200, compiled=True, net=None):
    """Trains on random data; returns the losses and the hash of the weights."""
    net = net or model()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    data = torch.randn(128, 64)
    labels = torch.randint(0, 10, (128,))

    def step():
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(data), labels)
        loss.backward()
        optimizer.step()
        return loss

    run = torch.compile(step) if compiled else step
    losses = [float(run()) for _ in range(steps)]
    assert losses[-1] < losses[0]
    return losses, digest(net)


def digest(net):
    """One text for all weights, to the last bit."""
    found = hashlib.sha256()
    for name, value in net.state_dict().items():
        found.update(name.encode() + value.numpy().tobytes())
    return found.hexdigest()


if __name__ == "__main__":
    import sys

    print(train(int(sys.argv[1]), compiled=sys.argv[2] == "compiled")[1])
