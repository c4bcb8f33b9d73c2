"""Small trainings whose result is one text: the hash of all weights after some steps.

python tests/reliability/training.py transformer 200 compiled
"""

import hashlib
import sys

import wengert as torch
from wengert import nn


class Last(nn.Module):
    """An LSTM's last output, classified."""

    def __init__(self):
        super().__init__()
        self.lstm, self.head = nn.LSTM(8, 16, batch_first=True), nn.Linear(16, 10)

    def forward(self, x):
        return self.head(self.lstm(x)[0][:, -1])


def mlp():
    return nn.Sequential(
        nn.Linear(64, 128), nn.LayerNorm(128), nn.GELU(), nn.Dropout(0.1),
        nn.Linear(128, 64), nn.Tanh(), nn.Linear(64, 10),
    )  # fmt: skip


def convnet():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(32, 10),
    )  # fmt: skip


def transformer():
    layer = nn.TransformerEncoderLayer(8, 2, 32, dropout=0.1, batch_first=True)
    return nn.Sequential(nn.TransformerEncoder(layer, 2), nn.Flatten(), nn.Linear(64, 10))


# by name: how a model is made, and the shape of what it takes beside the batch
MODELS = {
    "mlp": (mlp, (64,)), "convnet": (convnet, (1, 8, 8)), "transformer": (transformer, (8, 8)),
    "lstm": (Last, (8, 8)),
}  # fmt: skip


def train(steps=200, compiled=True, name="mlp", net=None):
    """Trains on random data; returns the losses and the hash of the weights."""
    torch.manual_seed(0)
    make, shape = MODELS[name]
    net = net or make()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    data = torch.randn(128, *shape)
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
    print(train(int(sys.argv[2]), sys.argv[3] == "compiled", sys.argv[1])[1])
