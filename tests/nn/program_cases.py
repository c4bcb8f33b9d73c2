"""Small training programs as people write them; torch recorded their losses.

Each takes the package as `torch` and returns the losses of its steps from a seed on.
`python program_cases.py`, run where torch is installed, writes the records anew.
"""

import json
import math
from pathlib import Path

RECORDS = Path(__file__).resolve().parent.parent / "data" / "programs.json"
PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


@program
def language_model(torch):
    """A GPT with tied weights, weight decay groups, clipping and a schedule."""
    nn, F = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self, width, heads, length):
            super().__init__()
            self.heads = heads
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(),
                                     nn.Linear(4 * width, width), nn.Dropout(0.1))  # fmt: skip
            self.register_buffer("mask", torch.tril(torch.ones(length, length)))

        def forward(self, x):
            batch, length, width = x.shape
            parts = self.qkv(self.norm1(x)).split(width, 2)
            q, k, v = (p.view(batch, length, self.heads, -1).transpose(1, 2) for p in parts)
            scores = q @ k.transpose(-2, -1) / math.sqrt(width // self.heads)
            scores = scores.masked_fill(self.mask[:length, :length] == 0, float("-inf"))
            mixed = (F.softmax(scores, -1) @ v).transpose(1, 2).contiguous()
            x = x + self.out(mixed.view(batch, length, width))
            return x + self.mlp(self.norm2(x))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = nn.ModuleDict({
                "words": nn.Embedding(20, 32), "places": nn.Embedding(16, 32),
                "blocks": nn.ModuleList(Block(32, 4, 16) for _ in range(2)),
                "norm": nn.LayerNorm(32)})  # fmt: skip
            self.head = nn.Linear(32, 20, bias=False)
            self.parts.words.weight = self.head.weight
            self.apply(self.start)

        def start(self, module):
            if isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, 0.0, 0.02)

        def forward(self, ids, targets):
            x = self.parts.words(ids) + self.parts.places(torch.arange(ids.size(1)))
            for block in self.parts.blocks:
                x = block(x)
            logits = self.head(self.parts.norm(x))
            return F.cross_entropy(logits.view(-1, 20), targets.view(-1))

    model = GPT()
    groups = [
        {"params": [p for p in model.parameters() if p.dim() >= 2], "weight_decay": 0.1},
        {"params": [p for p in model.parameters() if p.dim() < 2], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=3e-3, betas=(0.9, 0.95))
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=25)
    data = torch.randint(0, 20, (500,))
    for _ in range(20):
        starts = torch.randint(480, (4,))
        x = torch.stack([data[k : k + 16] for k in starts])
        y = torch.stack([data[k + 1 : k + 17] for k in starts])
        loss = model(x, y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        yield loss.item()


@program
def gradient_penalty(torch):
    """A GAN whose critic is trained through the gradient of its input."""
    nn = torch.nn
    maker = nn.Sequential(nn.Linear(4, 16), nn.LeakyReLU(0.2), nn.Linear(16, 2))
    critic = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
    maker_optimizer = torch.optim.RMSprop(maker.parameters(), 1e-3)
    critic_optimizer = torch.optim.Adam(critic.parameters(), 1e-3, betas=(0.0, 0.9))
    for _ in range(20):
        real, fake = torch.randn(8, 2) + 2, maker(torch.randn(8, 4)).detach()
        share = torch.rand(8, 1)
        between = (share * real + (1 - share) * fake).requires_grad_(True)
        slope = torch.autograd.grad(critic(between).sum(), between, create_graph=True)[0]
        penalty = ((slope.norm(2, dim=1) - 1) ** 2).mean()
        loss = critic(fake).mean() - critic(real).mean() + 10 * penalty
        critic_optimizer.zero_grad()
        loss.backward()
        critic_optimizer.step()
        yield loss.item()
        loss = -critic(maker(torch.randn(8, 4))).mean()
        maker_optimizer.zero_grad()
        loss.backward()
        maker_optimizer.step()
        yield loss.item()


@program
def images(torch):
    """A residual network with batch normalisation, then evaluation."""
    nn, F = torch.nn, torch.nn.functional

    class Residual(nn.Module):
        def __init__(self, inputs, outputs, stride):
            super().__init__()
            self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
            self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
            self.norm1, self.norm2 = nn.BatchNorm2d(outputs), nn.BatchNorm2d(outputs)
            self.short = nn.Sequential()
            if stride != 1:
                self.short = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False),
                                           nn.BatchNorm2d(outputs))  # fmt: skip

        def forward(self, x):
            inner = self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x)))))
            return F.relu(inner + self.short(x))

    net = nn.Sequential(nn.Conv2d(3, 8, 3, 1, 1, bias=False), nn.BatchNorm2d(8),
                        nn.ReLU(inplace=True), Residual(8, 8, 1), Residual(8, 16, 2),
                        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 5))  # fmt: skip
    optimizer = torch.optim.SGD(net.parameters(), 0.05, momentum=0.9, weight_decay=5e-4,
                                nesterov=True)  # fmt: skip
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 12)
    x, y = torch.randn(16, 3, 8, 8), torch.randint(0, 5, (16,))
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    for _ in range(12):
        loss = criterion(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        yield loss.item()
    net.eval()
    with torch.no_grad():
        yield criterion(net(x), y).item()


@program
def characters(torch):
    """An LSTM carried over pieces of text, with dropout between layers."""
    nn = torch.nn
    embed, recur, read = nn.Embedding(15, 8), nn.LSTM(8, 12, 2, dropout=0.2), nn.Linear(12, 15)
    parameters = [*embed.parameters(), *recur.parameters(), *read.parameters()]
    optimizer = torch.optim.Adam(parameters, 1e-2)
    text, state = torch.randint(0, 15, (41, 4)), None
    for k in range(20):
        start = k % 4 * 10
        state = state and tuple(part.detach() for part in state)
        out, state = recur(embed(text[start : start + 10]), state)
        loss = nn.functional.cross_entropy(
            read(out).reshape(-1, 15), text[start + 1 : start + 11].reshape(-1)
        )
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 0.25)
        optimizer.step()
        yield loss.item()


@program
def learning_to_learn(torch):
    """MAML: the outer gradient goes through inner steps."""
    nn, F = torch.nn, torch.nn.functional
    net = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
    optimizer = torch.optim.Adam(net.parameters(), 1e-2)

    def forward(x, w):
        return F.linear(torch.tanh(F.linear(x, w[0], w[1])), w[2], w[3])

    for _ in range(20):
        optimizer.zero_grad()
        total = 0
        for _ in range(3):
            height, shift = torch.rand(2)
            x = torch.rand(8, 1) * 4 - 2
            weights = list(net.parameters())
            loss = F.mse_loss(forward(x, weights), height * torch.sin(x + shift))
            slopes = torch.autograd.grad(loss, weights, create_graph=True)
            weights = [w - 0.1 * slope for w, slope in zip(weights, slopes)]
            x = torch.rand(8, 1) * 4 - 2
            total = total + F.mse_loss(forward(x, weights), height * torch.sin(x + shift))
        total.backward()
        optimizer.step()
        yield total.item()


@program
def translation(torch):
    """A packed bidirectional encoder, attention with padding, a cell that decodes."""
    nn = torch.nn
    encoder, cell = nn.GRU(3, 8, bidirectional=True), nn.GRUCell(3, 16)
    attention, read = nn.MultiheadAttention(16, 2), nn.Linear(32, 3)
    parts = nn.ModuleList([encoder, cell, attention, read])
    optimizer = torch.optim.Adamax(parts.parameters(), 1e-2)
    x, lengths = torch.randn(6, 4, 3), torch.tensor([6, 5, 3, 2])
    padding = torch.arange(6)[None] >= lengths[:, None]
    for _ in range(10):
        packed, last = encoder(nn.utils.rnn.pack_padded_sequence(x, lengths))
        memory, _ = nn.utils.rnn.pad_packed_sequence(packed)
        hidden, given, loss = torch.cat([last[0], last[1]], 1), torch.zeros(4, 3), 0
        for step in range(6):
            hidden = cell(given, hidden)
            context, _ = attention(hidden[None], memory, memory, key_padding_mask=padding)
            given = read(torch.cat([hidden, context[0]], 1))
            loss = loss + nn.functional.smooth_l1_loss(given, x[step])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss.item()


@program
def autoencoder(torch):
    """A variational autoencoder over a shuffled loader."""
    nn, F = torch.nn, torch.nn.functional
    data = torch.utils.data
    inner, mean, spread = nn.Linear(20, 16), nn.Linear(16, 4), nn.Linear(16, 4)
    outer = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 20))
    parts = nn.ModuleList([inner, mean, spread, outer])
    optimizer = torch.optim.Adam(parts.parameters(), 1e-2)
    loader = data.DataLoader(data.TensorDataset(torch.rand(64, 20)), 16, shuffle=True)
    for _ in range(3):
        for (x,) in loader:
            hidden = F.relu(inner(x))
            mu, log_var = mean(hidden), spread(hidden)
            z = mu + torch.exp(0.5 * log_var) * torch.randn_like(mu)
            loss = F.binary_cross_entropy(torch.sigmoid(outer(z)), x, reduction="sum")
            loss = loss - 0.5 * torch.sum(1 + log_var - mu.pow(2) - log_var.exp())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            yield loss.item()


def losses(torch, name):
    torch.manual_seed(42)
    return list(PROGRAMS[name](torch))


if __name__ == "__main__":
    import torch

    RECORDS.write_text(json.dumps({name: losses(torch, name) for name in PROGRAMS}, indent=0))
