"""Sparse gradients of embeddings, and optimizers that use them: torch 2.13's answers."""

import copy
import io

import pytest
import wengert as torch
import wengert.nn.functional as F
from wengert import nn, optim


@pytest.fixture
def table():
    weight = torch.arange(12.0).view(6, 2) / 10
    return nn.Embedding.from_pretrained(weight, freeze=False, sparse=True)


def rows_of(grad):
    assert grad.is_sparse and grad.layout is torch.sparse_coo
    return grad._indices().tolist(), grad._values().tolist()


def test_a_position_for_each_index(table):
    index = torch.tensor([1, 3, 1])
    for _ in range(5):  # graphs that come again are differentiated by written code
        table.weight.grad = None
        out = table(index)
        assert out.grad_fn.name() == "EmbeddingBackward0"
        out.sum().backward()
        assert rows_of(table.weight.grad) == ([[1, 3, 1]], [[1, 1]] * 3)
    grad = table.weight.grad
    assert not grad.is_coalesced() and grad.to_dense().sum(1).tolist() == [0, 4, 0, 2, 0, 0]
    assert repr(grad) == ("tensor(indices=tensor([[1, 3, 1]]),\n       values=tensor([[1., 1.],\n"
                          "                      [1., 1.],\n                      [1., 1.]]),\n"
                          "       size=(6, 2), nnz=3, layout=torch.sparse_coo)")  # fmt: skip


def test_sums_keep_the_order_that_torch_gives(table):
    table(torch.tensor([1, 3, 1])).sum().backward()
    table(torch.tensor([0, 2])).sum().backward()
    assert rows_of(table.weight.grad)[0] == [[0, 1, 2, 3, 1]]
    table.weight.grad = None
    (table(torch.tensor([1, 1])).sum() + table(torch.tensor([2, 1])).sum()).backward()
    assert rows_of(table.weight.grad)[0] == [[1, 1, 2, 1]]


def test_with_dense_gradients_the_sum_is_dense(table):
    (table(torch.tensor([1, 1])).sum() + table.weight.sum()).backward()
    assert not table.weight.grad.is_sparse
    assert table.weight.grad.sum(1).tolist() == [2, 6, 2, 2, 2, 2]
    before = table.weight.grad
    table(torch.tensor([0])).sum().backward()
    assert table.weight.grad is before and before.sum(1).tolist() == [4, 6, 2, 2, 2, 2]


def test_padding_and_frequencies():
    weight = torch.ones(5, 2, requires_grad=True)
    F.embedding(torch.tensor([0, 0, 4]), weight, sparse=True, padding_idx=4).sum().backward()
    assert rows_of(weight.grad) == ([[0, 0]], [[1, 1]] * 2)
    out = F.embedding(torch.tensor([0, 0]), weight, sparse=True, scale_grad_by_freq=True)
    with pytest.raises(RuntimeError, match="scale_grad_by_freq not supported with sparse"):
        out.sum().backward()


@pytest.mark.parametrize(("mode", "value"), [("sum", 1), ("mean", 0.5)])
def test_bags(mode, value):
    bag = nn.EmbeddingBag(6, 2, mode=mode, sparse=True)
    bag(torch.tensor([[1, 2], [4, 1]])).sum().backward()
    assert rows_of(bag.weight.grad) == ([[1, 2, 4, 1]], [[value] * 2] * 4)


def test_zeroing_hooks_and_assigning(table):
    seen = []
    table.weight.register_hook(lambda grad: seen.append(grad.is_sparse))
    table(torch.tensor([1, 2])).sum().backward()
    table.zero_grad(set_to_none=False)
    assert rows_of(table.weight.grad) == ([[]], []) and seen == [True]
    table.weight.grad = torch.sparse_coo_tensor([[1]], torch.ones(1, 2), (6, 2))
    with pytest.raises(RuntimeError, match=r"gradient of size '\[5, 2\]'"):
        table.weight.grad = torch.sparse_coo_tensor([[1]], torch.ones(1, 2), (5, 2))


def steps(optimizer, table, indices):
    for index in indices:
        optimizer.zero_grad()
        table(torch.tensor(index)).pow(2).sum().backward()
        optimizer.step()
    return [round(v, 4) for v in table.weight.detach().flatten().tolist()]


def test_sparse_adam(table):
    optimizer = optim.SparseAdam(table.parameters(), lr=0.1)
    found = steps(optimizer, table, [[0, 1], [1, 2], [2, 3, 2]])
    assert found == [0.0, 0.0, 0.0068, 0.103, 0.2411, 0.3414, 0.5361, 0.6361, 0.8, 0.9, 1.0, 1.1]
    state = optimizer.state_dict()["state"][0]
    assert state["step"] == 3 and state["exp_avg"][4:].count_nonzero() == 0
    again = optim.SparseAdam(table.parameters(), lr=0.1)
    again.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    assert repr(again) == repr(optimizer)
    assert repr(again).splitlines()[1:-1] == ["Parameter Group 0", "    betas: (0.9, 0.999)",
                                              "    eps: 1e-08", "    lr: 0.1",
                                              "    maximize: False"]  # fmt: skip


def test_sgd_and_adagrad(table):
    other = copy.deepcopy(table)
    dense = nn.Embedding.from_pretrained(table.weight.detach().clone(), freeze=False)
    indices = [[0, 1], [1, 2], [2, 3, 2]]
    for make in (lambda p: optim.SGD(p, lr=0.1), lambda p: optim.Adagrad(p, lr=0.1)):
        sparse, expected = copy.deepcopy(other), copy.deepcopy(dense)
        assert steps(make(sparse.parameters()), sparse, indices) == steps(
            make(expected.parameters()), expected, indices)  # fmt: skip
    momentum = optim.SGD(other.parameters(), lr=0.1, momentum=0.9)
    other(torch.tensor([1, 3, 1])).sum().backward()
    momentum.step(), momentum.step()
    buffer = momentum.state_dict()["state"][0]["momentum_buffer"]
    assert [row[0] for row in rows_of(buffer)[1]] == pytest.approx([1.9] * 3)


@pytest.mark.parametrize(("make", "message"), [
    (optim.Adam, "Adam does not support sparse gradients, please consider SparseAdam instead"),
    (optim.AdamW, "Adam does not support sparse gradients, please consider SparseAdam instead"),
    (optim.RMSprop, "RMSprop does not support sparse gradients"),
    (optim.NAdam, "NAdam does not support sparse gradients"),
    (lambda p: optim.Adagrad(p, weight_decay=0.1), "weight_decay option is not compatible"),
    (lambda p: optim.SGD(p, lr=0.1, weight_decay=0.1), "add.sparse, dense. is not supported"),
])  # fmt: skip
def test_optimizers_that_refuse(table, make, message):
    table(torch.tensor([1])).sum().backward()
    before = table.weight.detach().clone()
    with pytest.raises(RuntimeError, match=message):
        make(table.parameters()).step()
    assert torch.equal(table.weight.detach(), before)


def test_sparse_adam_checks(table):
    layer = nn.Linear(2, 2)
    layer(torch.ones(1, 2)).sum().backward()
    with pytest.raises(RuntimeError, match="does not support dense gradients"):
        optim.SparseAdam(layer.parameters()).step()
    with pytest.raises(ValueError, match="Invalid learning rate: -1"):
        optim.SparseAdam(table.parameters(), lr=-1)
    with pytest.raises(ValueError, match=r"Sparse params at indices \[\[0, 0\]\]"):
        optim.SparseAdam([torch.zeros(2).to_sparse().requires_grad_()])


def test_compiled_functions_keep_them(table):
    optimizer = optim.SparseAdam(table.parameters(), lr=0.1)

    @torch.compile
    def step(index):
        optimizer.zero_grad()
        loss = table(index).pow(2).sum()
        loss.backward()
        optimizer.step()
        return loss

    for index in ([0, 1], [1, 2], [2, 3, 2]):
        step(torch.tensor(index))
    assert table.weight.grad.is_sparse and "[R133]" in str(step.explain())
    found = [round(v, 4) for v in table.weight.detach().flatten().tolist()]
    assert found[2:6] == [0.0068, 0.103, 0.2411, 0.3414]


def test_dense_tensors_are_added_to_in_place():
    dense, sparse = torch.ones(3), torch.tensor([0.0, 2.0, 0.0]).to_sparse()
    assert dense.add_(sparse) is dense and dense.tolist() == [1, 3, 1]
    dense -= sparse
    assert dense.tolist() == [1, 1, 1]
    sparse.mul_(3)
    assert sparse.to_dense().tolist() == [0, 6, 0] and sparse.norm().item() == 6
    with pytest.raises(NotImplementedError, match="'SparseCPU'"):
        sparse.clamp_(0, 1)


def test_sparse_tensors_are_saved():
    file = io.BytesIO()
    source = torch.sparse_coo_tensor([[1, 3, 1]], [[1.0], [2.0], [3.0]], (5, 1))
    torch.save({"t": source, "c": source.coalesce()}, file)
    file.seek(0)
    loaded = torch.load(file)
    assert rows_of(loaded["t"]) == rows_of(source) and not loaded["t"].is_coalesced()
    assert loaded["c"].is_coalesced() and loaded["c"].to_dense().tolist() == [
        [0],
        [4],
        [0],
        [2],
        [0],
    ]
