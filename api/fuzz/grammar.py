"""Statements to draw: pointwise ops and reductions from the catalogue, the rest listed here.

A maker gets the drawing in progress and returns a text with its arguments, or None if nothing
fits. It may propose what eager refuses: such statements are dropped.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from ..ir.op import TABLE
from ..ir.value import FUNCTIONS, Function

if TYPE_CHECKING:
    from .draw import Drawing

Made = tuple[str, tuple[str, ...]] | None
NUMBERS = ("0", "1", "-1", "2", "0.5", "-2.5", "3", "0.125")
FLOATS = ("float32", "float64", "float16", "bfloat16")
DTYPES = (*FLOATS, "int64", "int32", "uint8", "bool", "complex64")
# The sign of a NaN is nobody's promise; these are drawn without NaN below.
SIGN_OF_NAN = {"copysign", "signbit"}
OPERATORS = ("+", "-", "*", "/", "//", "%", "**", "<", ">=", "==", "!=", "&", "|", "^")


@cache
def pointwise_functions(count: int) -> tuple[str, ...]:
    """Public functions of `count` tensors and nothing else that is needed."""
    return tuple(key for key, f in sorted(FUNCTIONS.items()) if _takes(f, count))


def _takes(function: Function, count: int) -> bool:
    name = function.name.rpartition(".")[2]
    op = TABLE.get(name) or TABLE.get(function.name.replace(".", "_"))
    if (
        name in SIGN_OF_NAN
        or op is None
        or op.kind != "pointwise"
        or op.random
        or len(op.inputs) != count
    ):
        return False
    parameters = inspect.signature(function.call).parameters.values()
    return sum(p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD
               for p in parameters) == count  # fmt: skip


def spelled(key: str) -> str:
    """How a public function is called."""
    return f"torch.{key}"


def fitted(name: str, place: int) -> str:
    """Argument `place`, moved into the op's domain by a function whose slope is exact far out."""
    op = TABLE.get(name.rpartition(".")[2]) or TABLE[name.replace(".", "_")]
    if op.domain is None:
        return f"{{{place}}}"
    low, high = (round(8 * float(end)) / 8 for end in op.domain)
    return f"({{{place}}}.atan() * {(high - low) / 3.2:g} + {(high + low) / 2:g})"


def unary(d: Drawing) -> Made:
    name = d.pick(pointwise_functions(1))
    inside = fitted(name, 0) if d.chance(0.6) else "{0}"
    return f"{spelled(name)}({inside})", (d.any_value(),)


def binary(d: Drawing) -> Made:
    name = d.pick(pointwise_functions(2))
    inside = ", ".join(fitted(name, k) if d.chance(0.5) else f"{{{k}}}" for k in range(2))
    return f"{spelled(name)}({inside})", d.broadcastable(2)


def ternary(d: Drawing) -> Made:
    text = d.pick(("torch.where({0} > 0, {1}, {2})", "torch.addcmul({0}, {1}, {2})",
                   "torch.addcdiv({0}, {1}, {2})", "torch.lerp({0}, {1}, {2})",
                   "torch.clamp({0}, {1}, {2})", "torch.where({0}.bool(), {1}, {2})",
                   "torch.copysign({0}, {1}.nan_to_num())"))  # fmt: skip
    return text, d.broadcastable(3)


def operator(d: Drawing) -> Made:
    sign = d.pick(OPERATORS)
    if d.chance(0.35):
        number = d.number()
        sides = ("{0}", number) if d.chance(0.7) else (number, "{0}")
        return f"{sides[0]} {sign} {sides[1]}", (d.any_value(),)
    return f"{{0}} {sign} {{1}}", d.broadcastable(2)


def inplace(d: Drawing) -> Made:
    """Effects only: the statement has no target."""
    names = [f.name for f in FUNCTIONS.values() if f.inplace and f.method]
    chosen = d.pick([n for n in names if n in pointwise_functions(1) + pointwise_functions(2)])
    if chosen in pointwise_functions(1):
        return f"{{0}}.{chosen}_()", (d.any_value(),)
    if d.chance(0.4):
        return f"{{0}}.{chosen}_({d.number()})", (d.any_value(),)
    return f"{{0}}.{chosen}_({{1}})", d.broadcastable(2)


def write(d: Drawing) -> Made:
    """Effects through views."""
    name = d.any_value()
    place = d.pick(("[0]", "[..., 1:]", "[:, 0]", "[-1:]", "[..., 0]", "[::2]", ".t()[0]",
                    ".view(-1)[1:]", "[None]", ".diagonal()", ".mT", ".flatten()"))  # fmt: skip
    what = d.pick((".add_(1)", ".mul_(0.5)", ".zero_()", ".fill_(2)", ".neg_()", " = 0.5", " = {1}",
                   ".copy_({1})", ".clamp_(-1, 1)", ".sub_({1})", ".tanh_()"))  # fmt: skip
    if what.startswith(" =") and not place.startswith("["):
        place = "[1:]"
    return f"{{0}}{place}{what}", (name, d.any_value())


def reduction(d: Drawing) -> Made:
    name = d.any_value()
    functions = [k for k, op in TABLE.items() if op.kind == "reduction" and k in FUNCTIONS]
    chosen = d.pick([*functions, "argmax", "argmin", "norm", "count_nonzero", "nanmean"])
    if d.chance(0.35):
        return f"{{0}}.{chosen}({'0' if chosen == 'logsumexp' else ''})", (name,)
    dim = d.dim(name) if chosen.startswith("arg") or d.chance(0.6) else d.dims(name)
    if chosen == "prod":
        dim = d.dim(name)
    keep = ", keepdim=True" if d.chance(0.4) and chosen != "count_nonzero" else ""
    return f"torch.{chosen}({{0}}, dim={dim}{keep})", (name,)


VIEWS = (
    "{0}.t()", "{0}.mT", "{0}.transpose(0, -1)", "{0}.flatten()", "{0}.unsqueeze({dim})",
    "{0}.squeeze()", "{0}.squeeze({dim})", "{0}[{index}]", "{0}[{index}]", "{0}[{index}]",
    "{0}.select({dim}, 0)", "{0}.narrow({dim}, 0, 1)", "{0}.diagonal()", "{0}.unfold({dim}, 2, 1)",
    "{0}.reshape(-1)", "{0}.view(-1)", "{0}.movedim({dim}, 0)", "{0}.chunk(2, {dim})[-1]",
    "{0}.split(2, {dim})[0]", "{0}.unbind({dim})[-1]", "{0}.expand(2, *{0}.shape)",
    "{0}.expand_as({1})", "{0}.unsqueeze(-1).expand(*{0}.shape, 3)", "{0}.detach()",
    "{0}.reshape({0}.shape[::-1])", "{0}.view({0}.numel(), 1)", "{0}.as_strided((2,), (1,), 0)",
    "{0}.permute(*range({0}.dim())[::-1])", "torch.real({0})", "torch.view_as_real({0})",
    "{0}.imag", "{0}.broadcast_to({1}.shape)", "{0}.view_as({1})", "{0}.swapaxes(0, {dim})",
    "{0}.tensor_split(2, {dim})[1]", "{0}.unflatten({dim}, (-1, 1))", "{0}.data",
)  # fmt: skip

COPIES = (
    "{0}.flip({dim})", "{0}.roll(1, {dim})", "{0}.repeat(2, *[1] * {0}.dim())", "{0}.clone()",
    "torch.cat([{0}, {1}], {dim})", "torch.stack([{0}, {1}], {dim})", "{0}.contiguous()",
    "torch.stack([{0}, {0}], -1)", "{0}.tril()", "{0}.triu(1)", "{0}.rot90(1, (0, -1))",
    "{0}.repeat_interleave(2, {dim})", "F.pad({0}, (1, 0))", "F.pad({0}, (0, 2), value=0.5)",
    "F.pad({0}[None], (1, 1), mode='reflect')", "F.pad({0}[None], (1, 1), mode='replicate')",
    "F.pad({0}[None], (1, 1), mode='circular')", "F.pad({0}, (-1, 0))",
    "{0}.to(torch.{dtype}, copy=True)", "{0}.to(torch.{dtype}, copy=True)", "{0}.float()",
    "{0}.double()", "{0}.bool()", "{0}.type_as({1})", "torch.zeros_like({0})",
    "torch.full_like({0}, 2)", "torch.diag_embed({0})", "torch.where({0} > 0, {0}, {1})",
    "torch.where({0} > {1}, 1.5, {1})", "{0}.masked_fill({0} > 0, 0)",
    "torch.arange({0}.numel()).view({0}.shape) * {0}", "torch.atleast_2d({0})", "{0}.tile((2,))",
    "torch.block_diag({0}, {1})", "torch.meshgrid({0}, {1}, indexing='ij')[0]", "torch.vander({0})",
    "{0}.new_zeros({0}.shape) + {0}", "torch.hstack([{0}, {1}])", "torch.vstack([{0}, {1}])",
    "{0}.diff(dim={dim})", "torch.trapezoid({0}, dim={dim})", "torch.kron({0}, {1})",
)  # fmt: skip

INDEXING = (
    "{0}[[0, -1]]", "{0}[:, [0, 0, 1]]", "{0}[..., [1, 0]]", "{0}[{0} > 0]", "{0}[[0, 1], [1, 0]]",
    "{0}.index_select({dim}, torch.tensor([0, 0, 1]))", "{0}.take(torch.tensor([0, 1, -1]))",
    "torch.gather({0}, {dim}, {0}.argsort({dim}))", "{0}.gather({dim}, {0}.argmax({dim}, True))",
    "torch.take_along_dim({0}, {0}.argsort(), -1)", "{0}[None, :, None]", "{0}[..., ::2]",
    "{0}.scatter({dim}, {0}.argsort({dim}), {0})", "{0}.scatter({dim}, {0}.argsort({dim}), 0.5)",
    "{0}.scatter_add({dim}, torch.zeros_like({0}, dtype=torch.int64), {0})",
    "{0}.index_add({dim}, torch.tensor([0, 1, 0]), {0}.index_select({dim}, torch.tensor([1, "
    "1, 0])))",
    "{0}.index_fill({dim}, torch.tensor([0]), 0.5)",
    "{0}.index_copy({dim}, torch.tensor([1, 0]), {0}.narrow({dim}, 0, 2))",
    "{0}.index_put((torch.tensor([0, 1]),), {0}[0])", "{0}.masked_scatter({0} > 0, {0} * 2)",
    "{0}.index_put((torch.tensor([0, 0]),), {0}[0], accumulate=True)",
    "torch.scatter_reduce({0}, {dim}, torch.zeros_like({0}, dtype=torch.int64), {0}, 'amax')",
    "{0}.select_scatter({0}.select({dim}, 0) * 2, {dim}, 0)", "{0}.nonzero()",
    "F.embedding(torch.tensor([[0, 1], [1, 0]]), {0})", "F.one_hot({0}.argmax(-1), 7)",
    "torch.searchsorted({0}.flatten().sort().values, {0}.flatten())", "torch.isin({0}, {1})",
)  # fmt: skip

# A matrix whose diagonal outweighs the rest: what rounds within a statement is not measured, so
# that must not decide whether it is singular.
REGULAR = "({0} @ {0}.mT).tanh() + 9 * torch.eye({0}.shape[-2])"
# Lines of two elements at least, neither of them short: the cosine of one with another of one
# element has a gradient of 0, which is left by the cancelling of anything.
LINES = "torch.cat([{0}, {0} + 1], -1), torch.cat([{1}, {1} - 1], -1), dim=-1"

ALGEBRA = (
    "{0} @ {1}", "{0} @ {0}.mT", "{0}.mT @ {0}", "{0} @ {0}.mT @ {0}", "torch.matmul({0}, {1}.mT)",
    "F.linear({0}, {1})", "F.linear({0}, {1}, {1}.sum(-1))",
    "torch.outer({0}.flatten()[:5], {1}.flatten()[:4])",
    "torch.einsum('...i,...j->...ij', {0}, {1})", "torch.einsum('ij,kj->ik', {0}, {1})",
    "torch.einsum('...i,...i->...', {0}, {1})", "torch.dot({0}.flatten()[:3], {1}.flatten()[:3])",
    "torch.tensordot({0}, {1}, 1)", "torch.addmm({0}, {0}, {0}.mT @ {0})", "torch.bmm({0}, {1}.mT)",
    "torch.baddbmm({0} @ {0}.mT, {0}, {0}.mT)", "{0}.softmax({dim})", "{0}.log_softmax({dim})",
    "F.layer_norm({0}, {0}.shape[-1:])",
    "F.layer_norm({0}, {0}.shape[-1:], {0}.flatten()[:{0}.shape[-1]])",
    "F.rms_norm({0}, {0}.shape[-1:])", "F.group_norm({0}[None], 1)", "F.normalize({0}, dim={dim})",
    "F.batch_norm({0}, None, None, training=True)", "{0}.cumsum({dim})", "{0}.cumprod({dim})",
    "{0}.cummax({dim}).values", "{0}.cummin({dim}).indices", "{0}.logcumsumexp({dim})",
    "{0}.sort({dim}).values", "{0}.sort({dim}, descending=True).indices",
    "{0}.topk(2, {dim}).values", "{0}.max({dim}).values", "{0}.min({dim}, keepdim=True).values",
    "{0}.max({dim}).indices", "{0}.median({dim}).values", "{0}.kthvalue(1, {dim}).values",
    "{0}.median()", "{0}.aminmax().max", "{0}.var({dim})", "{0}.std(unbiased=False)",
    "torch.var_mean({0}, {dim})[1]", "{0}.quantile(0.25)",
    "F.conv1d({0}[None, None].flatten(2), torch.ones(2, 1, 2) * 0.5)", "F.max_pool1d({0}, 2, 1)",
    "F.conv1d({0}, {0}[:, :, :2].contiguous())", "F.conv2d({0}[None], {0}[None, :, :2, :2])",
    "F.conv2d({0}[:, None], torch.ones(3, 1, 2, 2), padding=1, stride=2)", "F.avg_pool1d({0}, 2)",
    "F.conv_transpose1d({0}, {0}.transpose(0, 1)[:, :, :2].transpose(0, 1).contiguous())",
    "F.max_pool2d({0}, 2, 1, 1)", "F.avg_pool2d({0}, 2, 1, 1)", "F.adaptive_avg_pool1d({0}, 2)",
    "F.mse_loss({0}, {1})", "F.l1_loss({0}, {1}, reduction='none')", "F.smooth_l1_loss({0}, {1})",
    "F.cross_entropy({0}, {0}.argmax(1).detach())", "F.nll_loss({0}.log_softmax(1), {0}.argmin(1))",
    "F.binary_cross_entropy_with_logits({0}, {1}.sigmoid())", "F.kl_div({0}, {1}.softmax(-1))",
    f"F.cosine_similarity({LINES})",
    "torch.cdist({0}, {1}, compute_mode='donot_use_mm_for_euclid_dist')", "torch.trace({0})",
    "F.interpolate({0}[None, None].flatten(2), scale_factor=2)",
    "F.glu(torch.cat([{0}, {0}], {dim}), {dim})",
    f"torch.linalg.det({REGULAR})", "{0}.renorm(2, 0, 1.0)",
    f"torch.linalg.solve({REGULAR}, {{0}})",
    "{0}.float().dist({1}.float())", f"torch.linalg.inv({REGULAR})",
    "torch.fft.rfft({0}).abs()", "F.scaled_dot_product_attention({0}, {0}, {1})",
    "F.unfold({0}[None, None], 2)", "{0}.logsumexp({dim})", "torch.lerp({0}, {1}, 0.25)",
    "torch.addcmul({0}, {0}, {1}, value=0.5)", "{0}.clamp(-0.5, 0.5)", "{0}.clamp(min=0)",
    "{0}.pow(2)", "{0} ** 3", "2 ** {0}", "{0}.abs().pow({1})", "F.dropout({0}, 0.5)",
    "torch.rand_like({0}) * {0}", "torch.randn({0}.shape) + {0}", "torch.bernoulli({0}.sigmoid())",
    "F.gelu({0})", "F.gelu({0}, approximate='tanh')", "F.silu({0})", "F.softplus({0})",
    "F.elu({0})", "F.leaky_relu({0}, 0.25)", "F.hardswish({0})", "F.mish({0})",
    "torch.histc({0}.detach(), 4, -2, 2)", "torch.bincount({0}.flatten().clamp(0, 5))",
)  # fmt: skip

CONTROL = (
    "if {0}.sum() > 0:\n    {target} = {0} * 2\nelse:\n    {target} = {1}.neg()",
    "if ({0} > 0).any():\n    {target} = {0}.relu()\nelse:\n    {target} = {0} - 1",
    "if {0}.shape[0] > 2:\n    {target} = {0}.tanh()\nelse:\n    {target} = {1}.sin()",
    "{target} = {0}\nfor _ in range(3):\n    {target} = {target} * 0.5 + {1}",
    "{target} = {0}.clone()\nfor k in range(2):\n    {target}[k:] += {1}",
    "{target} = {0}\nwhile {target}.abs().sum() > 0.3 and {target}.abs().sum() < 1e3:\n"
    "    {target} = {target} * 0.25",
    "with torch.no_grad():\n    {target} = {0} * {1}",
    "with torch.no_grad():\n    {0}.mul_(0.5)\n{target} = {0} + 1",
    "{target} = {0} * float({0}.shape[0])", "{target} = sum({0}.unbind(0))",
    "{target} = {0}\nfor row in {1}:\n    {target} = {target} + row",
    "{target} = torch.stack([r.exp() for r in {0}])",
    "if bool({0}.isfinite().all()):\n    {target} = {0}.cos()\nelse:\n"
    "    {target} = {0}.nan_to_num()",
    "try:\n    {target} = {0}.view(2, -1)\nexcept RuntimeError:\n    {target} = {0} + 1",
)  # fmt: skip


def listed(texts: tuple[str, ...]) -> Callable[[Drawing], Made]:
    """A maker that fills one of `texts`."""

    def make(d: Drawing) -> Made:
        text = d.pick(texts)
        first = d.any_value()
        second = d.like(first) if d.chance(0.6) else d.any_value()
        for word, draw in (("{dim}", d.dim), ("{index}", d.index)):
            while word in text:
                text = text.replace(word, draw(first), 1)
        return text.replace("{dtype}", d.pick(DTYPES)), (first, second)

    return make


MAKERS: tuple[tuple[Callable[[Drawing], Made], int, bool], ...] = (
    # maker, weight, does it only have effects?
    (unary, 12, False), (binary, 9, False), (ternary, 2, False), (operator, 10, False),
    (inplace, 6, True), (write, 7, True), (reduction, 7, False), (listed(VIEWS), 14, False),
    (listed(COPIES), 9, False), (listed(INDEXING), 6, False), (listed(ALGEBRA), 14, False),
    (listed(CONTROL), 4, False),
)  # fmt: skip


def weights() -> list[int]:
    return [weight for _, weight, _ in MAKERS]


def namespace() -> dict[str, Any]:
    """What the text of a program may name."""
    import wengert as torch
    import wengert.nn.functional as F

    return {"torch": torch, "F": F}
