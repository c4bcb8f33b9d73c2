"""`torch.distributed` in one process: torch 2.13's answers with gloo."""

import pytest
import wengert as torch
from wengert import distributed as dist
from wengert import nn
from wengert.nn.parallel import DistributedDataParallel

NOT_MADE = "Default process group has not been initialized, please make sure to call"


@pytest.fixture
def world(monkeypatch):
    monkeypatch.setenv("MASTER_ADDR", "localhost")
    monkeypatch.setenv("MASTER_PORT", "29500")
    dist.init_process_group("gloo", rank=0, world_size=1)
    yield
    if dist.is_initialized():
        dist.destroy_process_group()


def test_before_there_is_a_group():
    assert dist.is_available() and not dist.is_initialized() and not dist.is_nccl_available()
    for call in (dist.get_rank, dist.get_world_size, dist.barrier, dist.get_backend,
                 lambda: dist.all_reduce(torch.ones(1)),
                 lambda: DistributedDataParallel(nn.Linear(1, 1)),
                 lambda: torch.utils.data.DistributedSampler(range(3))):  # fmt: skip
        with pytest.raises(ValueError, match=NOT_MADE):
            call()
    with pytest.raises(AssertionError, match="Process group cannot be None"):
        dist.destroy_process_group()


def test_how_groups_begin(monkeypatch, tmp_path):
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ValueError, match="environment variable RANK expected, but not set"):
        dist.init_process_group("gloo")
    with pytest.raises(ValueError, match="environment variable MASTER_ADDR expected"):
        dist.init_process_group("gloo", rank=0, world_size=1)
    with pytest.raises(RuntimeError, match="rank 1 of 2 processes; there is no communication"):
        dist.init_process_group("gloo", f"file://{tmp_path}/f", rank=1, world_size=2)
    dist.init_process_group("gloo", f"file://{tmp_path}/f", rank=0, world_size=1)
    with pytest.raises(ValueError, match="trying to initialize the default process group twice!"):
        dist.init_process_group("gloo", rank=0, world_size=1)
    dist.destroy_process_group()
    for name, value in (("RANK", "0"), ("WORLD_SIZE", "1"), ("MASTER_ADDR", "localhost"),
                        ("MASTER_PORT", "29500")):  # fmt: skip
        monkeypatch.setenv(name, value)
    dist.init_process_group()
    assert dist.is_initialized() and dist.get_rank() == 0
    dist.destroy_process_group()


def test_collectives(world):
    x = torch.arange(3.0)
    assert (dist.get_rank(), dist.get_world_size(), dist.get_backend()) == (0, 1, "gloo")
    assert dist.all_reduce(x, op=dist.ReduceOp.SUM) is None
    work = dist.all_reduce(x, async_op=True)
    assert work.wait() is True and work.is_completed() and x.tolist() == [0, 1, 2]
    gathered, received, whole = [torch.zeros(3)], torch.zeros(3), torch.zeros(3)
    dist.all_gather(gathered, x)
    dist.scatter(received, [x], src=0)
    dist.all_gather_into_tensor(whole, x)
    assert gathered[0].tolist() == received.tolist() == whole.tolist() == [0, 1, 2]
    objects = [None]
    dist.all_gather_object(objects, {"a": 1})
    assert objects == [{"a": 1}] and str(dist.ReduceOp.SUM) == "RedOpType.SUM"
    assert dist.get_world_size(dist.new_group([0])) == 1
    assert dist.get_process_group_ranks(dist.group.WORLD) == [0]
    with pytest.raises(ValueError, match="Invalid destination rank"):
        dist.send(x, 0)
    with pytest.raises(RuntimeError, match=r"index 0 \(expected \(3\), got \(2\)\)"):
        dist.all_gather([torch.zeros(2)], x)


def test_modules_are_trained(world):
    torch.manual_seed(0)
    layer = nn.Linear(2, 1)
    model = DistributedDataParallel(layer)
    assert repr(model) == ("DistributedDataParallel(\n  (module): Linear(in_features=2, "
                           "out_features=1, bias=True)\n)")  # fmt: skip
    assert list(model.state_dict()) == ["module.weight", "module.bias"] and model.module is layer
    optimizer, losses = torch.optim.SGD(model.parameters(), 0.1), []
    for _ in range(3):
        loss = model(torch.ones(4, 2)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(round(loss.item(), 5))
    assert losses == [0.04324, 0.00692, 0.00111]
    with model.no_sync():
        model(torch.ones(1, 2)).sum().backward()
    assert torch.allclose(layer.weight.grad, torch.full((1, 2), 0.9335), atol=1e-4)
    with pytest.raises(RuntimeError, match="doesn't have any parameter that requires a gradient"):
        DistributedDataParallel(nn.ReLU())


def test_the_sampler_asks_the_group(world):
    sampler = torch.utils.data.DistributedSampler(range(5), shuffle=False)
    assert list(sampler) == [0, 1, 2, 3, 4] and (sampler.num_replicas, sampler.rank) == (1, 0)
