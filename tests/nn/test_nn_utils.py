"""nn.utils: clipping, sequences, parametrisations; SWA; nn.init by torch's draws."""

import pytest
import wengert as torch
from wengert import nn
from wengert.nn.utils import (
    clip_grad_norm_,
    clip_grad_value_,
    parameters_to_vector,
    parametrizations,
    parametrize,
    remove_weight_norm,
    rnn,
    spectral_norm,
    vector_to_parameters,
    weight_norm,
)


def with_grads(*values):
    made = [nn.Parameter(torch.zeros(len(value))) for value in values]
    for parameter, value in zip(made, values):
        parameter.grad = torch.tensor(value)
    return made


def test_clipping_scales_all_gradients_together():
    parameters = with_grads([3.0, 4.0], [12.0])
    assert clip_grad_norm_(parameters, 6.5).item() == 13
    assert torch.allclose(parameters[0].grad, torch.tensor([1.5, 2.0]))
    clip_grad_value_(parameters, 1.75)
    assert torch.allclose(parameters[0].grad, torch.tensor([1.5, 1.75]))
    parameters[0].grad[0] = float("inf")
    with pytest.raises(RuntimeError, match="is non-finite, so it cannot be clipped"):
        clip_grad_norm_(parameters, 1.0, error_if_nonfinite=True)


def test_vectors_of_parameters():
    a, b = nn.Parameter(torch.ones(2)), nn.Parameter(torch.zeros(1, 2))
    assert parameters_to_vector([a, b]).tolist() == [1, 1, 0, 0]
    vector_to_parameters(torch.arange(4.0), [a, b])
    assert b.tolist() == [[2, 3]] and b.requires_grad


@pytest.mark.parametrize("kind", [nn.RNN, nn.LSTM, nn.GRU])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_packed_sequences_equal_runs_one_by_one(kind, bidirectional):
    torch.manual_seed(1)
    layer = kind(2, 3, 2, bidirectional=bidirectional)
    sequences = [torch.randn(n, 2) for n in (2, 4, 1)]
    packed = rnn.pack_sequence(sequences, enforce_sorted=False)
    outputs = rnn.unpack_sequence(layer(packed)[0])
    for sequence, output in zip(sequences, outputs):
        assert torch.allclose(layer(sequence)[0], output, atol=1e-6)


def test_padding_and_packing_are_inverse():
    padded = rnn.pad_sequence([torch.ones(2), torch.zeros(3)], padding_value=9.0)
    assert padded.T.tolist() == [[1, 1, 9], [0, 0, 0]]
    packed = rnn.pack_padded_sequence(padded, [2, 3], enforce_sorted=False)
    again, lengths = rnn.pad_packed_sequence(packed, padding_value=9.0, total_length=4)
    assert again.T.tolist() == [[1, 1, 9, 9], [0, 0, 0, 9]] and lengths.tolist() == [2, 3]
    with pytest.raises(RuntimeError, match="must be sorted in decreasing order"):
        rnn.pack_padded_sequence(padded, [2, 3])


def test_weight_norm_in_both_forms():
    torch.manual_seed(0)
    plain = nn.Linear(3, 2)
    x = torch.randn(4, 3)
    expected = plain(x)
    new = parametrizations.weight_norm(nn.Linear(3, 2))
    new.load_state_dict({"bias": plain.bias, "parametrizations.weight.original0":
                         plain.weight.norm(2, 1, keepdim=True),
                         "parametrizations.weight.original1": plain.weight * 5})  # fmt: skip
    assert torch.allclose(new(x), expected, atol=1e-6)
    with pytest.warns(FutureWarning, match="deprecated"):
        old = weight_norm(plain)
    assert [n for n, _ in old.named_parameters()] == ["bias", "weight_g", "weight_v"]
    assert torch.allclose(old(x), expected, atol=1e-6)
    assert list(remove_weight_norm(old)._parameters) == ["bias", "weight"]


def test_spectral_norm_makes_the_largest_singular_value_one():
    torch.manual_seed(0)
    for layer in (
        spectral_norm(nn.Linear(3, 4), n_power_iterations=40),
        parametrizations.spectral_norm(nn.Linear(3, 4), n_power_iterations=40),
    ):
        layer(torch.ones(1, 3)).sum().backward()
        assert torch.linalg.matrix_norm(layer.weight, 2).item() == pytest.approx(1, abs=1e-4)


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).transpose(-1, -2)

    def right_inverse(self, x):
        return x.triu()


def test_parametrisation_computes_assigns_and_leaves():
    layer = nn.Linear(3, 3)
    parametrize.register_parametrization(layer, "weight", Symmetric())
    assert torch.equal(layer.weight, layer.weight.T)
    assert type(layer).__name__ == "ParametrizedLinear"
    wanted = torch.eye(3) * 2
    layer.weight = wanted
    assert torch.equal(layer.weight, wanted)
    with parametrize.cached():
        assert layer.weight is layer.weight
    layer(torch.ones(1, 3)).sum().backward()
    assert layer.parametrizations.weight.original.grad is not None
    parametrize.remove_parametrizations(layer, "weight")
    assert type(layer) is nn.Linear and torch.equal(layer.weight, wanted)


def test_orthogonal_parametrisation():
    torch.manual_seed(0)
    for kind in ("matrix_exp", "cayley"):
        weight = parametrizations.orthogonal(nn.Linear(3, 5), orthogonal_map=kind).weight
        assert torch.allclose(weight.T @ weight, torch.eye(3), atol=1e-5)


def test_initialisations():
    torch.manual_seed(0)
    q = nn.init.orthogonal_(torch.empty(5, 3))
    assert torch.allclose(q.T @ q, torch.eye(3), atol=1e-5)
    t = nn.init.trunc_normal_(torch.empty(1000), 0, 1, -0.5, 0.25)
    assert t.min() >= -0.5 and t.max() <= 0.25 and abs(t.mean() + 0.125) < 0.05
    assert nn.init.trunc_normal_(torch.empty(50), 0, 1, 2, 3).min() >= 2
    s = nn.init.sparse_(torch.empty(10, 4), 0.3)
    assert ((s == 0).sum(0) == 3).all()
    with pytest.raises(ValueError, match="fewer than 2 dimensions"):
        nn.init.xavier_uniform_(torch.empty(3))


def test_encoder_zeroes_padding_at_inference_only():
    torch.manual_seed(0)
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), 1)
    mask = torch.tensor([[False, True]])
    encoder.eval()
    with torch.no_grad():
        assert encoder(torch.ones(1, 2, 4), src_key_padding_mask=mask)[0, 1].abs().sum() == 0
    assert encoder(torch.ones(1, 2, 4), src_key_padding_mask=mask)[0, 1].abs().sum() > 0
