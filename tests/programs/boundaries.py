# Derivatives and hooks around compiled functions, closures, inputs that come to require grad.
import wengert as torch
from wengert import nn
from wengert.func import hessian, jacfwd, jacrev


def shown(value):
    return [round(v, 3) + 0.0 for v in value.detach().flatten().tolist()]


def wave(x):
    return x.sin() * x.flip(0)


def energy(x):
    return (wave(x) * x).sum()


torch.manual_seed(1)
x = torch.tensor([0.5, -1.0, 2.0])
for _ in range(3):
    wave(x.clone().requires_grad_())
    energy(x.clone().requires_grad_())
    print(shown(jacrev(wave)(x)), shown(jacfwd(wave)(x)), shown(hessian(energy)(x)))

net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
lbfgs = torch.optim.LBFGS(net.parameters(), lr=0.1, max_iter=3)
points = torch.randn(5, 3)


def closure():
    lbfgs.zero_grad()
    loss = net(points).square().mean()
    loss.backward()
    return loss


for _ in range(3):
    print(round(lbfgs.step(closure).item(), 3))
sgd = torch.optim.SGD(net.parameters(), lr=0.01)


def fit(x):
    x.requires_grad_()
    u = net(x)
    (du,) = torch.autograd.grad(u.sum(), x, create_graph=True)
    loss = (du.sum(1) - u[:, 0]).square().mean()
    sgd.zero_grad()
    loss.backward()
    sgd.step()
    return loss


for k in range(4):
    x = points + k
    print(round(fit(x).item(), 3), x.requires_grad, shown(x.grad.sum()))


def pair(x):
    return x.exp(), x.cos()


for _ in range(3):
    x = torch.tensor([0.1, 0.2], requires_grad=True)
    a, b = pair(x)
    b.register_hook(lambda g: g * 2)
    a.sum().backward(retain_graph=True)
    before = shown(x.grad)
    b.sum().backward()
    print(before, shown(x.grad))

critic = nn.utils.parametrizations.spectral_norm(nn.Linear(3, 2))


def score(x):
    return critic(x).square().sum()


for k in range(3):
    x = (points * (k + 1)).requires_grad_()
    (g,) = torch.autograd.grad(score(x), x, create_graph=True)
    critic.zero_grad()
    g.norm(dim=1).sub(1).square().mean().backward()
    print(shown(critic.bias.grad), shown(critic.parametrizations.weight.original.grad))
    with torch.no_grad():
        critic.parametrizations.weight.original.copy_(torch.randn(2, 3))
