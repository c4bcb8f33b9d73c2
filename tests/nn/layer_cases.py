"""Layers and inputs whose printed form, initial weights, outputs and gradients torch recorded.

`python layer_cases.py`, run where torch is installed, writes the records anew.
"""

import json
import warnings
from pathlib import Path

RECORDS = Path(__file__).resolve().parent.parent / "data" / "layers.json"

# constructor -> inputs: shapes of normal values, ("ints", high, shape) or ("rand", shape)
LAYERS = {
    "Linear(4, 3)": [(2, 4)],
    "Linear(4, 3, bias=False)": [(2, 5, 4)],
    "Bilinear(2, 3, 4)": [(5, 2), (5, 3)],
    "Conv1d(4, 6, 3, stride=2, padding=1, dilation=2, groups=2)": [(2, 4, 9)],
    "Conv2d(3, 4, 3, padding='same', padding_mode='reflect')": [(2, 3, 6, 6)],
    "Conv2d(3, 4, (3, 2), padding=1, padding_mode='circular', bias=False)": [(2, 3, 6, 6)],
    "Conv3d(2, 2, 2)": [(1, 2, 4, 4, 4)],
    "ConvTranspose1d(4, 2, 3, stride=2, output_padding=1)": [(2, 4, 5)],
    "ConvTranspose2d(4, 6, 3, stride=2, padding=1, groups=2, dilation=2)": [(2, 4, 5, 5)],
    "MaxPool1d(2)": [(2, 3, 7)],
    "MaxPool2d(3, stride=2, padding=1, ceil_mode=True)": [(2, 3, 7, 7)],
    "AvgPool1d(3, stride=1, padding=1)": [(2, 3, 7)],
    "AvgPool2d(2, count_include_pad=False, padding=1)": [(2, 3, 6, 6)],
    "AvgPool3d(2, divisor_override=3)": [(1, 2, 4, 4, 4)],
    "LPPool2d(2.0, 2, stride=1)": [(1, 2, 5, 5)],
    "AdaptiveMaxPool2d((2, None))": [(1, 2, 5, 5)],
    "AdaptiveAvgPool2d(2)": [(1, 2, 5, 5)],
    "FractionalMaxPool2d(2, output_ratio=.6)": [(1, 2, 6, 6)],
    "BatchNorm1d(3)": [(4, 3)],
    "BatchNorm2d(3, affine=False)": [(4, 3, 2, 2)],
    "BatchNorm1d(3, track_running_stats=False)": [(4, 3, 5)],
    "BatchNorm3d(2, momentum=None)": [(2, 2, 2, 2, 2)],
    "LayerNorm([3, 4])": [(2, 3, 4)],
    "LayerNorm(4, bias=False, eps=1e-3)": [(2, 4)],
    "GroupNorm(2, 4)": [(3, 4, 5)],
    "InstanceNorm1d(3)": [(2, 3, 5)],
    "InstanceNorm2d(3, affine=True, track_running_stats=True)": [(2, 3, 4, 4)],
    "RMSNorm(4)": [(2, 4)],
    "LocalResponseNorm(2)": [(1, 4, 3, 3)],
    "Embedding(5, 3, padding_idx=-1)": [("ints", 5, (2, 3))],
    "Embedding(5, 3, max_norm=1., norm_type=1)": [("ints", 5, (4,))],
    "EmbeddingBag(6, 2)": [("ints", 6, (3, 4))],
    "EmbeddingBag(6, 2, mode='sum', padding_idx=1)": [("ints", 6, (3, 4))],
    "Dropout(.3)": [(4, 5)],
    "Dropout2d(.5)": [(2, 4, 3, 3)],
    "AlphaDropout(.5)": [(3, 4)],
    **{f"{name}": [(2, 4)] for name in (
        "ReLU(inplace=False)", "ReLU6()", "RReLU()", "Hardtanh()", "Sigmoid()", "Hardsigmoid()",
        "Tanh()", "SiLU()", "Mish()", "Hardswish()", "ELU(.5)", "CELU(2.)", "SELU()", "GLU()",
        "GELU()", "GELU('tanh')", "Hardshrink()", "LeakyReLU(.2)", "LogSigmoid()",
        "Softplus(2., 3.)", "Softshrink()", "PReLU(4)", "Softsign()", "Tanhshrink()", "Softmin(1)",
        "Softmax(1)", "LogSoftmax(-1)", "Threshold(.1, 20.)", "Flatten(0)",
        "Unflatten(1, (2, 2))")},
    "CosineSimilarity()": [(3, 4), (3, 4)],
    "PixelShuffle(2)": [(1, 4, 2, 2)],
    "PixelUnshuffle(2)": [(1, 1, 4, 4)],
    "ChannelShuffle(2)": [(1, 4, 2, 2)],
    "Upsample(size=(5, 4), mode='bilinear', align_corners=True)": [(1, 2, 3, 3)],
    "UpsamplingNearest2d(scale_factor=2)": [(1, 2, 3, 3)],
    "Fold((4, 5), (2, 2))": [(1, 8, 12)],
    "Unfold((2, 2), padding=1)": [(1, 2, 3, 3)],
    "ConstantPad2d((1, 2, 0, 1), 1.5)": [(1, 2, 5, 5)],
    "ZeroPad1d((1, 2))": [(1, 2, 5)],
    "ReflectionPad2d((1, 2, 2, 1))": [(1, 2, 5, 5)],
    "ReplicationPad3d(1)": [(1, 2, 3, 3, 3)],
    "L1Loss()": [(3, 4), (3, 4)],
    "MSELoss(reduction='sum')": [(3, 4), (3, 4)],
    "SmoothL1Loss(beta=.5)": [(3, 4), (3, 4)],
    "HuberLoss(delta=.5)": [(3, 4), (3, 4)],
    "NLLLoss()": [(3, 4), ("ints", 4, (3,))],
    "CrossEntropyLoss(label_smoothing=.1)": [(3, 4), ("ints", 4, (3,))],
    "BCEWithLogitsLoss()": [(3, 4), ("rand", (3, 4))],
    "BCELoss()": [("rand", (3, 4)), ("rand", (3, 4))],
    "KLDivLoss(reduction='batchmean')": [(3, 4), ("rand", (3, 4))],
    "PoissonNLLLoss(full=True)": [(3, 4), ("rand", (3, 4))],
    "GaussianNLLLoss()": [(3, 4), (3, 4), ("rand", (3, 4))],
    "MultiMarginLoss(p=2)": [(3, 4), ("ints", 4, (3,))],
    "TripletMarginLoss(swap=True)": [(3, 4), (3, 4), (3, 4)],
    "TripletMarginWithDistanceLoss()": [(3, 4), (3, 4), (3, 4)],
    "AdaptiveLogSoftmaxWithLoss(8, 10, [2, 5], div_value=2.)": [(5, 8), ("ints", 10, (5,))],
    "RNN(3, 4, 2, 'relu', bidirectional=True)": [(5, 2, 3)],
    "RNN(3, 4, bias=False)": [(5, 3)],
    "LSTM(3, 4, 2, batch_first=True, bidirectional=True, dropout=.5)": [(2, 5, 3)],
    "LSTM(3, 4, proj_size=2, num_layers=2)": [(5, 2, 3)],
    "GRU(3, 4, 2, dropout=.3)": [(5, 2, 3), (2, 2, 4)],
    "RNNCell(3, 4, nonlinearity='relu')": [(2, 3), (2, 4)],
    "LSTMCell(3, 4)": [(2, 3)],
    "GRUCell(3, 4, bias=False)": [(3,)],
    "MultiheadAttention(4, 2)": [(3, 2, 4), (5, 2, 4), (5, 2, 4)],
    "MultiheadAttention(4, 2, batch_first=True, dropout=.2, kdim=3, vdim=5, add_bias_kv=True, "
    "add_zero_attn=True)": [(2, 3, 4), (2, 5, 3), (2, 5, 5)],
    "TransformerEncoderLayer(4, 2, 8)": [(3, 2, 4)],
    "TransformerEncoderLayer(4, 2, 8, activation='gelu', norm_first=True, batch_first=True)": [
        (2, 3, 4)],
    "TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), 2)": [(2, 3, 4)],
    "TransformerDecoderLayer(4, 2, 8)": [(3, 2, 4), (5, 2, 4)],
    "Transformer(4, 2, 1, 1, 8, batch_first=True)": [(2, 3, 4), (2, 5, 4)],
    "ModuleList([nn.Linear(1, 1), nn.Linear(1, 1), nn.Tanh()])": None,
    "ParameterList([torch.ones(2, 3), nn.Parameter(torch.zeros(1)), 3])": None,
    "ParameterDict({'b': torch.ones(2), 'a': 'x'})": None,
}  # fmt: skip


def make_input(torch, kind):
    if kind[0] == "ints":
        return torch.randint(0, kind[1], kind[2])
    if kind[0] == "rand":
        return torch.rand(kind[1]).requires_grad_()
    return torch.randn(kind, requires_grad=True)


def tensors_of(torch, value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, tuple | list):
        return [t for item in value for t in tensors_of(torch, item)]
    return []


def digest(tensor):
    """Shape and two sums that see every element."""
    if tensor is None:
        return None
    values = tensor.detach().double().flatten().tolist()
    return [list(tensor.shape), sum(v * (1 + k % 7) for k, v in enumerate(values)),
            sum(abs(v) for v in values)]  # fmt: skip


def weighted_sum(torch, outputs):
    """A scalar of all outputs in which every element has its own weight."""
    total = 0
    for out in outputs:
        if out.requires_grad:
            total = total + (out * torch.arange(1, out.numel() + 1).view(out.shape)).sum()
    return total


def run(torch, text):
    """What one layer does from a seed on: everything that can be compared."""
    nn = torch.nn
    torch.manual_seed(len(text))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        layer = eval("nn." + text, {"nn": nn, "torch": torch})
        record = {"repr": repr(layer)}
        record["state"] = {name: digest(value) for name, value in layer.state_dict().items()}
        if LAYERS[text] is None:
            return record
        inputs = [make_input(torch, kind) for kind in LAYERS[text]]
        for mode in (True, False):
            layer.train(mode)
            layer.zero_grad()
            outputs = tensors_of(torch, layer(*inputs))
            total = weighted_sum(torch, outputs)
            for x in inputs:
                x.grad = None
            if isinstance(total, torch.Tensor):
                total.backward()
            grads = [*(x.grad for x in inputs), *(p.grad for p in layer.parameters())]
            record[f"outputs {mode}"] = [digest(out) for out in outputs]
            record[f"grads {mode}"] = [digest(grad) for grad in grads]
        record["next random"] = float(torch.rand(1))
    return record


if __name__ == "__main__":
    import torch

    RECORDS.write_text(json.dumps({text: run(torch, text) for text in LAYERS}, indent=0))
