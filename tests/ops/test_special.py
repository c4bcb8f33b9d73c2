"""torch.special: values computed with 40 digits elsewhere; identities; poles and bounds."""

import math

import numpy as np
import pytest
import wengert as torch

INF, NAN = math.inf, math.nan
# name: (arguments ..., value)
VALUES = {
    "erf": ((-2.5, -0.999593047982555), (0.3, 0.3286267594591274), (1.7, 0.9837904585907745)),
    "erfc": (
        (-1.0, 1.8427007929497148),
        (0.4, 0.5716076449533315),
        (9.0, 4.13703174651381e-37),
        (26.0, 5.663192408856143e-296),
    ),
    "erfcx": (
        (-3.0, 16205.988853999586),
        (0.5, 0.6156903441929259),
        (40.0, 0.014100335983377814),
        (1000000000.0, 5.641895835477563e-10),
    ),
    "erfinv": (
        (-0.999999, -3.458910737275499),
        (0.1, 0.08885599049425769),
        (0.95, 1.3859038243496777),
    ),
    "ndtri": ((1e-10, -6.361340902404057), (0.3, -0.5244005127080408), (0.999, 3.090232306167813)),
    "log_ndtr": (
        (-30.0, -454.3212439563432),
        (-0.5, -1.1759117615936185),
        (4.0, -3.167174337748927e-05),
    ),
    "gammaln": (
        (-2.3, 0.36956666345500805),
        (1e-08, 18.42068073818021),
        (0.9, 0.06637623973474295),
        (1.999, -0.0004224618006921073),
        (2.5, 0.2846828704729192),
        (150.0, 600.0094705553274),
    ),
    "digamma": ((-2.3, 3.3173231575618227), (0.2, -5.289039896592188), (11.5, 2.3982391295357814)),
    "i0": ((0.5, 1.0634833707413236), (12.0, 18948.925349296307)),
    "i0e": ((3.0, 0.2430003541618254), (300.0, 0.02304255841508546)),
    "i1": ((-2.0, -1.590636854637329), (12.0, 18141.348781638833)),
    "i1e": ((3.0, 0.19682671329730086), (-300.0, -0.02300412204026895)),
    "modified_bessel_k0": ((0.3, 1.3724600605442974), (5.0, 0.0036910983340425942)),
    "modified_bessel_k1": ((0.3, 3.055992033457325), (5.0, 0.004044613445452165)),
    "scaled_modified_bessel_k0": ((0.3, 1.8526273007720142), (500.0, 0.056035915417234516)),
    "scaled_modified_bessel_k1": ((0.3, 4.12515776224447), (500.0, 0.05609192337055557)),
    "bessel_j0": ((0.0, 1.0), (1.0, 0.7651976865579666), (20.0, 0.16702466434058316)),
    "bessel_j1": ((-1.0, -0.4400505857449335), (20.0, 0.06683312417585005)),
    "bessel_y0": ((0.5, -0.44451873350670656), (20.0, 0.06264059680938383)),
    "bessel_y1": ((0.5, -1.471472392670243), (20.0, -0.1655116143625213)),
    "airy_ai": (
        (-9.0, -0.022133721547341403),
        (-1.0, 0.5355608832923521),
        (0.5, 0.23169360648083348),
        (4.0, 0.0009515638512048018),
    ),
    "spherical_bessel_j0": ((0.1, 0.9983341664682815), (7.0, 0.09385522838839844)),
    "zeta": (
        (2.0, 1.0, 1.6449340668482264),
        (1.5, 7.0, 0.7838877675183705),
        (3.0, 0.25, 64.66386996876847),
    ),
    "gammainc": (
        (0.5, 0.2, 0.4729107431344619),
        (3.0, 5.0, 0.8753479805169189),
        (500.0, 490.0, 0.3316732636887788),
        (0.01, 1.0, 0.997783765376772),
    ),
    "gammaincc": (
        (0.5, 0.2, 0.5270892568655381),
        (3.0, 12.0, 0.0005222580500328978),
        (500.0, 530.0, 0.09166949714158167),
        (0.01, 1.0, 0.00221623462322799),
    ),
    "chebyshev_polynomial_t": (
        (0.3, 4.0, 0.34480000000000005),
        (0.3, 12.0, -0.8704309944320001),
        (1.5, 5.0, 61.5),
    ),
    "chebyshev_polynomial_u": ((0.3, 4.0, 0.04960000000000006), (-0.6, 12.0, -0.6118929981439996)),
    "hermite_polynomial_h": ((0.7, 5.0, 34.49824),),
    "laguerre_polynomial_l": ((0.7, 5.0, -0.5730464166666667),),
    "legendre_polynomial_p": ((0.7, 5.0, -0.3651987499999999),),
}
# What torch's formulas give there, see Note [Denominators without their leading one]
LOOSE = {"bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "airy_ai"}


@pytest.mark.parametrize("name", sorted(VALUES))
def test_values(name):
    columns = [torch.tensor(c, dtype=torch.float64) for c in zip(*VALUES[name])]
    found = getattr(torch.special, name)(*columns[:-1])
    np.testing.assert_allclose(found.numpy(), columns[-1].numpy(),
                               rtol=1e-7 if name in LOOSE else 4e-13)  # fmt: skip


@pytest.mark.parametrize("name", sorted(VALUES))
def test_float32_is_as_good_as_the_double_result(name):
    columns = [torch.tensor(c) for c in zip(*VALUES[name])][:-1]
    found = getattr(torch.special, name)(*columns)
    exact = getattr(torch.special, name)(*(c.double() for c in columns))
    assert found.dtype is torch.float32
    np.testing.assert_allclose(found.numpy(), exact.numpy(), rtol=3e-7, atol=1e-45)


def test_identities():
    x = torch.linspace(-6, 6, 401, dtype=torch.float64)
    positive = x.abs() + 0.2  # nearer to the poles, differences cancel
    special = torch.special
    for left, right in (
        (special.erf(x) + special.erfc(x), torch.ones_like(x)),
        (special.erfinv(special.erf(x / 2)), x / 2),
        (special.ndtri(special.ndtr(x / 2)), x / 2),
        (special.gammaln(positive + 1), special.gammaln(positive) + positive.log()),
        (special.psi(positive + 1), special.psi(positive) + 1 / positive),
        (special.polygamma(2, positive + 1), special.polygamma(2, positive) + 2 / positive**3),
        (special.gammainc(positive, positive) + special.gammaincc(positive, positive), x * 0 + 1),
        (special.i0e(x), special.i0(x) * (-x.abs()).exp()),
        (special.multigammaln(positive + 1, 2), special.gammaln(positive + 1)
         + special.gammaln(positive + 0.5) + math.log(math.pi) / 2),
    ):  # fmt: skip
        np.testing.assert_allclose(left.numpy(), right.numpy(), rtol=3e-12, atol=1e-13)


@pytest.mark.parametrize(("name", "arguments", "value"), [
    ("gammaln", (0.0,), INF), ("gammaln", (-3.0,), INF), ("gammaln", (-INF,), INF),
    ("digamma", (0.0,), -INF), ("digamma", (-2.0,), NAN), ("digamma", (INF,), INF),
    ("erfinv", (1.0,), INF), ("erfinv", (-1.0,), -INF), ("erfinv", (1.5,), NAN),
    ("erfc", (INF,), 0.0), ("erfcx", (-INF,), INF), ("ndtri", (0.0,), -INF), ("ndtri", (2.0,), NAN),
    ("bessel_y0", (0.0,), -INF), ("bessel_y1", (-1.0,), NAN), ("modified_bessel_k0", (0.0,), INF),
    ("zeta", (1.0, 2.0), INF), ("zeta", (0.5, 2.0), NAN), ("zeta", (2.0, -3.0), INF),
    ("zeta", (2.5, -0.5), NAN), ("gammainc", (0.0, 1.0), 1.0), ("gammainc", (0.0, 0.0), NAN),
    ("gammainc", (INF, 1.0), 0.0), ("gammaincc", (2.0, INF), 0.0), ("gammainc", (-1.0, 2.0), NAN),
    ("entr", (0.0,), 0.0), ("entr", (-1.0,), -INF), ("xlogy", (0.0, 0.0), 0.0),
    ("xlogy", (0.0, NAN), NAN), ("xlog1py", (0.0, -1.0), 0.0), ("logit", (0.0,), -INF),
    ("sinc", (0.0,), 1.0), ("chebyshev_polynomial_t", (0.3, -1.0), 0.0),
    ("chebyshev_polynomial_v", (-1.0, 3.0), -7.0), ("airy_ai", (INF,), NAN),
])  # fmt: skip
def test_poles_and_bounds(name, arguments, value):
    tensors = [torch.tensor(a, dtype=torch.float64) for a in arguments]
    assert getattr(torch.special, name)(*tensors).item() == pytest.approx(value, nan_ok=True)


def test_numbers_name_the_node():
    x = torch.tensor([0.5, 2.0], requires_grad=True)
    names = [type(y.grad_fn).__name__ for y in (
        torch.xlogy(x, x), torch.xlogy(2.0, x), torch.xlogy(x, 2.0), torch.special.zeta(2.0, x),
        torch.special.xlog1py(x, 2.0), torch.log1p(x), torch.special.i0e(x))]  # fmt: skip
    assert names == [
        "XlogyBackward0", "XlogyBackward1", "XlogyBackward2", "SpecialZetaBackward1",
        "SpecialXlog1PyBackward2", "Log1PBackward0", "SpecialI0EBackward0"]  # fmt: skip


def test_what_torch_does_not_differentiate():
    x = torch.tensor([2.5], requires_grad=True)
    assert not torch.special.bessel_j0(x).requires_grad
    with pytest.raises(NotImplementedError, match="igamma: input"):
        torch.igamma(x, torch.tensor([1.0])).backward()
    with pytest.raises(RuntimeError, match="heaviside is not implemented"):
        torch.heaviside(x, x).backward()


def test_polygamma_in_both_orders():
    x = torch.tensor([0.7])
    assert torch.polygamma(1, x) == x.polygamma(1) == torch.polygamma(n=1, input=x)
    with pytest.raises(RuntimeError, match="negative n"):
        torch.polygamma(-1, x)
    with pytest.raises(RuntimeError, match="greater than or equal to 1"):
        torch.mvlgamma(x, 0)
