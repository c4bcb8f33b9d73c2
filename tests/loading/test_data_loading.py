"""utils.data and utils.checkpoint: torch's orders, workers, collation, recomputation."""

import collections
import subprocess
import sys
import warnings

import numpy as np
import pytest
import wengert as torch
from wengert import nn
from wengert.utils.checkpoint import checkpoint, checkpoint_sequential
from wengert.utils.data import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    default_collate,
    get_worker_info,
    random_split,
)


class Squares(Dataset):
    def __len__(self):
        return 7

    def __getitem__(self, index):
        return index * index, float(index)


class Failing(Squares):
    def __getitem__(self, index):
        if index == 4:
            raise KeyError("no sample 4")
        return index


class Stream(IterableDataset):
    def __iter__(self):
        worker = get_worker_info()
        start, step = (0, 1) if worker is None else (worker.id, worker.num_workers)
        return iter(range(start, 10, step))


class Random(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return torch.rand(1)


def test_orders_are_torchs_after_a_seed():
    torch.manual_seed(3)
    loader = DataLoader(Squares(), batch_size=3, shuffle=True)
    epochs = [[x.tolist() for x, _ in loader] for _ in range(2)]
    assert epochs == [[[9, 4, 25], [16, 1, 0], [36]], [[9, 1, 36], [0, 4, 16], [25]]]
    generator = torch.Generator().manual_seed(5)
    assert list(RandomSampler(range(5), generator=generator)) == [1, 3, 0, 4, 2]
    first, second = random_split(range(6), [0.5, 0.5], torch.Generator().manual_seed(1))
    assert list(first) == [1, 5, 2] and len(second) == 3


@pytest.mark.parametrize("workers", [0, 2])
def test_workers_give_the_same_batches_in_order(workers):
    torch.manual_seed(0)
    loader = DataLoader(Squares(), batch_size=2, num_workers=workers, shuffle=True,
                        persistent_workers=workers > 0)  # fmt: skip
    epochs = [torch.cat([x for x, _ in loader]).tolist() for _ in range(2)]
    assert sorted(epochs[0]) == sorted(epochs[1]) == [0, 1, 4, 9, 16, 25, 36]
    torch.manual_seed(0)
    alone = DataLoader(Squares(), batch_size=2, shuffle=True)
    assert torch.cat([x for x, _ in alone]).tolist() == epochs[0]
    streamed = [x for batch in DataLoader(Stream(), 3, num_workers=workers) for x in batch.tolist()]
    assert sorted(streamed) == list(range(10))


def test_workers_draw_their_own_repeatable_numbers():
    def drawn():
        torch.manual_seed(1)
        return torch.cat(list(DataLoader(Random(), num_workers=2))).flatten().tolist()

    assert drawn() == drawn() and len(set(drawn())) == 4


@pytest.mark.parametrize("workers", [0, 2])
def test_errors_keep_their_kind_and_their_traceback(workers):
    with pytest.raises(KeyError) as caught:
        list(DataLoader(Failing(), batch_size=2, num_workers=workers))
    assert "no sample 4" in str(caught.value)
    if workers:
        assert "Caught KeyError in DataLoader worker process" in str(caught.value)
        assert "__getitem__" in str(caught.value)


def test_a_dead_worker_is_noticed(monkeypatch):
    from wengert.utils.data import parallel

    class Deadly(Squares):
        def __getitem__(self, index):
            import os

            os._exit(1)

    monkeypatch.setattr(parallel, "_POLL", 0.2)
    with pytest.raises(RuntimeError, match="exited unexpectedly"):
        list(DataLoader(Deadly(), num_workers=1))


def test_collation_keeps_containers():
    Point = collections.namedtuple("Point", "x y")
    batch = default_collate([{"a": 1, "b": [1.5, "s"]}, {"a": 2, "b": [2.5, "t"]}])
    assert batch["a"].tolist() == [1, 2] and batch["b"][1] == ("s", "t")
    assert batch["b"][0].dtype is torch.float64
    points = default_collate([Point(np.ones(2), True), Point(np.zeros(2), False)])
    assert points.x.shape == (2, 2) and points.y.dtype is torch.bool
    with pytest.raises(TypeError, match="batch must contain tensors, numpy arrays"):
        default_collate([object()])
    with pytest.raises(RuntimeError, match="each element in list of batch should be of equal size"):
        default_collate([[1], [1, 2]])


@pytest.mark.parametrize("make, text", [
    (lambda d: DataLoader(d, shuffle=True, sampler=range(3)), "mutually exclusive with shuffle"),
    (lambda d: DataLoader(Stream(), shuffle=True), "expected unspecified shuffle option"),
    (lambda d: DataLoader(d, batch_sampler=[[0]], batch_size=3), "batch_sampler option is"),
    (lambda d: DataLoader(d, num_workers=-1), "num_workers option should be non-negative"),
    (lambda d: DataLoader(d, batch_size=0), "batch_size should be a positive integer value"),
    (lambda d: setattr(DataLoader(d), "batch_size", 3), "should not be set after DataLoader"),
    (lambda d: random_split(d, [1, 1]), "Sum of input lengths does not equal"),
    (lambda d: DataLoader([], shuffle=True), "num_samples should be a positive integer value"),
])  # fmt: skip
def test_misuse_raises_torchs_errors(make, text):
    with pytest.raises(ValueError) as caught:
        make(Squares())
    assert text in str(caught.value)


def test_datasets_and_samplers():
    pairs = TensorDataset(torch.arange(4.0), torch.arange(8).view(4, 2))
    assert len(pairs) == 4 and pairs[1][1].tolist() == [2, 3]
    assert (pairs + pairs)[5][0] == 1 and ConcatDataset([range(3), range(5)])[-1] == 4
    assert list(BatchSampler(range(5), 2, True)) == [[0, 1], [2, 3]]
    assert set(WeightedRandomSampler([0.0, 1.0], 5)) == {1}
    shares = [list(DistributedSampler(range(10), 3, k, shuffle=False)) for k in range(3)]
    assert shares == [[0, 3, 6, 9], [1, 4, 7, 0], [2, 5, 8, 1]]


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpoints_give_the_same_gradients_and_random_numbers(reentrant):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Dropout(0.5), nn.Linear(4, 2))
    x = torch.ones(2, 3, requires_grad=True)

    def grads(call):
        x.grad = None
        net.zero_grad()
        torch.manual_seed(1)
        call(x).sum().backward()
        return [x.grad, *(p.grad for p in net.parameters())], torch.rand(1)

    expected, number = grads(net)
    for call in (lambda v: checkpoint(net, v, use_reentrant=reentrant),
                 lambda v: checkpoint_sequential(net, 2, v, use_reentrant=reentrant)):  # fmt: skip
        found, after = grads(call)
        assert all(torch.equal(a, b) for a, b in zip(found, expected)) and after == number


def test_checkpointing_saves_nothing_and_warns():
    saved = []
    x = torch.ones(2, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: saved.append(t) or t, lambda t: t):
        y = checkpoint(lambda v: v.exp().sin(), x, use_reentrant=False)
    assert not saved
    y.sum().backward()
    assert torch.allclose(x.grad, x.exp().cos() * x.exp())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        checkpoint(torch.sin, x)
    assert "use_reentrant parameter should be passed explicitly" in str(caught[0].message)


ORPHANED = """
import os
import wengert as torch
from wengert.utils.data import DataLoader, worker
worker.LOOK_EVERY = 0.2
loader = iter(DataLoader(torch.arange(100), num_workers=1))
next(loader)
print(loader.workers[0].pid, flush=True)
os._exit(0)  # as a process that is killed: nobody tells the workers
"""


def test_workers_end_when_the_main_process_is_gone():
    # Workers hold the other end of the pipe, so that reading ends with the last of them.
    done = subprocess.run([sys.executable, "-c", ORPHANED], capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
