# Modules, batch norm, dropout, an optimizer with a schedule, state kept on objects.
import wengert as torch
from wengert import nn


class Block(nn.Module):
    def __init__(self, width, drop=0.0):
        super().__init__()
        self.linear = nn.Linear(width, width, bias=False)
        self.norm = nn.BatchNorm1d(width)
        self.drop, self.seen = nn.Dropout(drop), 0

    @property
    def scale(self):
        return 0.5 if self.training else 1.0

    def forward(self, x):
        self.seen += 1
        return x + self.drop(torch.relu(self.norm(self.linear(x)))) * self.scale


class Meter:
    def __init__(self):
        self.total, self.count = 0.0, 0

    def add(self, value):
        self.total += value
        self.count += 1
        return self.total / self.count


def step(model, optimizer, meter, x, *, clip=None):
    optimizer.zero_grad()
    loss = model(x).pow(2).mean()
    loss.backward()
    if clip is not None:
        nn.utils.clip_grad_norm_(model.parameters(), clip)
    optimizer.step()
    return {"loss": loss.detach(), "mean": meter.add(loss.item())}


torch.manual_seed(3)
model = nn.Sequential(Block(4, 0.2), Block(4))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)
meter = Meter()
for k in range(5):
    found = step(model, optimizer, meter, torch.randn(6, 4), clip=1.0 if k > 2 else None)
    schedule.step()
    print(round(found["loss"].item(), 3), round(found["mean"], 3), schedule.get_last_lr())
model.eval()
with torch.no_grad():
    print(round(model(torch.ones(2, 4)).sum().item(), 3), [block.seen for block in model])
print(int(model[0].norm.num_batches_tracked), round(model[0].norm.running_mean.sum().item(), 3))
