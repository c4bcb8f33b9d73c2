"""Incomplete gamma functions, after Cephes and SciPy (S. Moshier, BSD license).

Four regimes: a series, a continued fraction, a second series for small x, and Temme's uniform
expansion for large a near x. The loops run over terms, for all elements at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .errors import erfc
from .gamma import lgamma
from .series import Array, piecewise, polynomial

EPSILON = 1.1102230246251565e-16
TERMS = 2000
LANCZOS_G = 6.02468004077673
LANCZOS_TOP = (
    0.006061842346248907, 0.5098416655656676, 19.519927882476175, 449.9445569063168,
    6955.999602515376, 75999.29304014542, 601859.6171681099, 3481712.154980646,
    14605578.087685067, 43338889.32467614, 86363131.2881386, 103794043.11634454,
    56906521.913471565,
)  # fmt: skip
LANCZOS_BOTTOM = (1.0, 66.0, 1925.0, 32670.0, 357423.0, 2637558.0, 13339535.0, 45995730.0,
                  105258076.0, 150917976.0, 120543840.0, 39916800.0, 0.0)  # fmt: skip
# Coefficients of eta ** n / a ** k, row by k
# fmt: off
TEMME = (
    (
        -0.3333333333333333, 0.08333333333333333, -0.014814814814814815, 0.0011574074074074073,
        0.0003527336860670194, -0.0001787551440329218, 3.919263178522438e-05,
        -2.1854485106799924e-06, -1.85406221071516e-06, 8.296711340953087e-07,
        -1.7665952736826078e-07, 6.707853543401498e-09, 1.0261809784240309e-08,
        -4.382036018453353e-09, 9.14769958223679e-10, -2.551419399494625e-11,
        -5.830772132550426e-11, 2.4361948020667415e-11, -5.0276692801141755e-12,
        1.1004392031956135e-13, 3.3717632624009856e-13, -1.392388722418162e-13,
        2.8534893807047445e-14, -5.139111834242572e-16, -1.9752288294349442e-15,
    ),
    (
        -0.001851851851851852, -0.003472222222222222, 0.0026455026455026454,
        -0.0009902263374485596, 0.00020576131687242798, -4.018775720164609e-07,
        -1.8098550334489977e-05, 7.64916091608111e-06, -1.6120900894563446e-06,
        4.647127802807434e-09, 1.378633446915721e-07, -5.752545603517705e-08,
        1.1951628599778148e-08, -1.7543241719747647e-11, -1.0091543710600413e-09,
        4.162792991842583e-10, -8.56390702649298e-11, 6.067215101604758e-14,
        7.1624989648114856e-12, -2.933186643771437e-12, 5.996696365683689e-13,
        -2.1671786527323313e-16, -4.978339972369262e-14, 2.0291628823713425e-14,
        -4.13125571381061e-15,
    ),
    (
        0.004133597883597883, -0.0026813271604938273, 0.0007716049382716049,
        2.0093878600823047e-06, -0.00010736653226365161, 5.2923448829120125e-05,
        -1.2760635188618728e-05, 3.423578734096138e-08, 1.3721957309062932e-06,
        -6.298992138380055e-07, 1.4280614206064242e-07, -2.0477098421990866e-10,
        -1.409252991086752e-08, 6.228974084922022e-09, -1.3670488396617112e-09,
        9.428356159014678e-13, 1.2872252400089318e-10, -5.5645956134363323e-11,
        1.197593554636698e-11, -4.1689782251838634e-15, -1.0940640427884595e-12,
        4.662239946390136e-13, -9.905105763906907e-14, 1.8931876768373515e-17,
        8.859221872591127e-15,
    ),
    (
        0.0006494341563786008, 0.00022947209362139917, -0.0004691894943952557,
        0.00026772063206283885, -7.561801671883977e-05, -2.396505113867297e-07,
        1.1082654115347302e-05, -5.6749528269915965e-06, 1.4230900732435883e-06,
        -2.7861080291528143e-11, -1.6958404091930278e-07, 8.099464905388083e-08,
        -1.9111168485973655e-08, 2.3928620439808118e-12, 2.0620131815488797e-09,
        -9.460496661855133e-10, 2.1541049775774907e-10, -1.388823336813903e-14,
        -2.1894761681963938e-11, 9.790998951171684e-12, -2.178219188018096e-12,
        6.208819573407901e-17, 2.126978363279737e-13, -9.344688791517433e-14,
        2.045367122678285e-14,
    ),
    (
        -0.0008618882909167117, 0.0007840392217200666, -0.0002990724803031902,
        -1.4638452578843418e-06, 6.641498215465122e-05, -3.968365047179435e-05,
        1.1375726970678419e-05, 2.507497226237533e-10, -1.6954149536558305e-06,
        8.907507532205309e-07, -2.292934834000805e-07, 2.956794137544049e-11,
        2.8865829742708783e-08, -1.4189739437803219e-08, 3.4463580499464896e-09,
        -2.3024517174528067e-13, -3.9409233028046403e-10, 1.86023389685045e-10,
        -4.356323005056618e-11, 1.278600101629623e-15, 4.67927502665792e-12,
        -2.149246470613483e-12, 4.908815614809652e-13, -6.33859148489156e-18,
        -5.045332069080094e-14,
    ),
    (
        -0.00033679855336635813, -6.972813758365858e-05, 0.0002772753244959392,
        -0.00019932570516188847, 6.797780477937208e-05, 1.419062920643967e-07,
        -1.3594048189768693e-05, 8.018470256334202e-06, -2.291481176508095e-06,
        -3.252473551298454e-10, 3.4652846491085265e-07, -1.8447187191171344e-07,
        4.8240967037894184e-08, -1.7989466721743514e-14, -6.306194500013523e-09,
        3.162417628774568e-09, -7.840924253697429e-10, 5.192679165254041e-15,
        9.358944242306784e-11, -4.513426216163278e-11, 1.0799129993116828e-11,
        -3.661886712685252e-17, -1.210902069055155e-12, 5.680743584990564e-13,
        -1.3249659916340829e-13,
    ),
    (
        0.0005313079364639922, -0.0005921664373536939, 0.0002708782096718045,
        7.902353232660328e-07, -8.153969367561969e-05, 5.61168275310625e-05,
        -1.8329116582843375e-05, -3.0796134506033047e-09, 3.465155368803609e-06,
        -2.0291327396058603e-06, 5.788792863149004e-07, 2.338630673826657e-13,
        -8.828600746330484e-08, 4.7435958880408125e-08, -1.2545415020710382e-08,
        8.649648858010293e-14, 1.6846058979264062e-09, -8.575492823577594e-10,
        2.1598224929232125e-10, -7.613230520476153e-16, -2.6639822008536144e-11,
        1.3065700536611057e-11, -3.1799163902367977e-12, 4.710976121367431e-18,
        3.6902800842763465e-13,
    ),
)
# fmt: on


def igamma(a: Array, x: Array) -> Array:
    """The regularised lower incomplete gamma function."""
    a, x = np.broadcast_arrays(a, x)
    result = piecewise(
        np.where(np.isnan(a), a, x),
        ((x < 0) | (a < 0) | ((a == 0) & (x == 0)) | (np.isinf(a) & np.isinf(x)), _nan),
        ((a == 0) | np.isinf(x), lambda x, a: np.ones_like(x)),
        ((x == 0) | np.isinf(a), lambda x, a: np.zeros_like(x)),
        (_near(a, x), lambda x, a: _temme(a, x, 1.0)),
        ((x > 1) & (x > a), lambda x, a: 1 - _upper(a, x)),
        (True, lambda x, a: _series(a, x)),
        a=a,
    )
    return _at_infinity(a, x, result, 0.0)


def igammac(a: Array, x: Array) -> Array:
    """The regularised upper incomplete gamma function, 1 - igamma."""
    a, x = np.broadcast_arrays(a, x)
    result = piecewise(
        np.where(np.isnan(a), a, x),
        ((x < 0) | (a < 0) | ((a == 0) & (x == 0)) | (np.isinf(a) & np.isinf(x)), _nan),
        ((a == 0) | np.isinf(x), lambda x, a: np.zeros_like(x)),
        ((x == 0) | np.isinf(a), lambda x, a: np.ones_like(x)),
        (_near(a, x), lambda x, a: _temme(a, x, -1.0)),
        (True, lambda x, a: _upper(a, x)),
        a=a,
    )
    return _at_infinity(a, x, result, 1.0)


def _at_infinity(a: Array, x: Array, result: Array, limit: float) -> Array:
    """torch looks at bounds before NaN: a = inf and x = 0 give `limit`, x = inf the other."""
    result = np.where(((a == np.inf) & np.isnan(x)) | (np.isnan(a) & (x == 0)), limit, result)
    return np.where((x == np.inf) & np.isnan(a), 1 - limit, result)


def _nan(x: Array, a: Array) -> Array:
    return np.full_like(x, np.nan)


def _near(a: Array, x: Array) -> Any:
    return (a > 200) & (np.abs(x - a) / a < 4.5 / np.sqrt(a))


def _upper(a: Array, x: Array) -> Array:
    by_series = np.where(x <= 0.5, -0.4 / np.log(x), np.where(x <= 1.1, 1.1 * x, x)) < a
    return piecewise(
        x,
        (by_series, lambda x, a: 1 - _series(a, x)),
        (x > 1.1, lambda x, a: _fraction(a, x)),
        (True, lambda x, a: _small_series(a, x)),
        a=a,
    )


def _factor(a: Array, x: Array) -> Array:
    """x^a exp(-x) / gamma(a)."""
    far = np.abs(a - x) > 0.4 * np.abs(a)
    plain = np.exp(a * np.log(x) - x - lgamma(a))
    base = a + LANCZOS_G - 0.5
    sum_ = polynomial(a, LANCZOS_TOP) / polynomial(a, LANCZOS_BOTTOM)
    inverse = 1 / a
    large = polynomial(inverse, LANCZOS_TOP[::-1]) / polynomial(inverse, LANCZOS_BOTTOM[::-1])
    scale = np.sqrt(base / np.e) / np.where(a > 1, large, sum_)
    moderate = np.exp(a - x) * np.power(x / base, a)
    ratio = (x - a - LANCZOS_G + 0.5) / base
    huge = np.exp(a * (np.log1p(ratio) - ratio) + x * (0.5 - LANCZOS_G) / base)
    return np.where(far, plain, scale * np.where((a < 200) & (x < 200), moderate, huge))


def _series(a: Array, x: Array) -> Array:
    """DLMF 8.11.4."""
    term = total = np.ones_like(x)
    for k in range(1, TERMS):
        term = term * (x / (a + k))
        total = total + term
        if not np.any(term > EPSILON * total):
            break
    return total * _factor(a, x) / a


def _small_series(a: Array, x: Array) -> Array:
    """DLMF 8.7.3, arranged to avoid cancellation."""
    power, total = np.ones_like(x), np.zeros_like(x)
    for n in range(1, TERMS):
        power = power * (-x / n)
        term = power / (a + n)
        total = total + term
        if not np.any(np.abs(term) > EPSILON * np.abs(total)):
            break
    log_x = np.log(x)
    return -np.expm1(a * log_x - lgamma(1 + a)) - np.exp(a * log_x - lgamma(a)) * total


def _fraction(a: Array, x: Array) -> Array:
    """DLMF 8.9.2, a continued fraction; elements keep the value they converged to."""
    y, z = 1 - a, x - a + 2
    p2, q2, p1, q1 = np.ones_like(x), x, x + 1, z * x
    result = p1 / q1
    done = np.zeros(x.shape, np.bool_)
    for n in range(1, TERMS):
        y, z = y + 1, z + 2
        p = p1 * z - p2 * (y * n)
        q = q1 * z - q2 * (y * n)
        value = np.where(q != 0, p / q, result)
        change = np.where(q != 0, np.abs((result - value) / value), 1.0)
        result = np.where(done, result, value)
        done |= change <= EPSILON
        if done.all():
            break
        scale = np.where(np.abs(p) > 4.5e15, 2.220446049250313e-16, 1.0)
        p2, q2, p1, q1 = p1 * scale, q1 * scale, p * scale, q * scale
    return result * _factor(a, x)


def _temme(a: Array, x: Array, sign: float) -> Array:
    """DLMF 8.12.3 and 8.12.4; `sign` is 1 for the lower function."""
    sigma = (x - a) / a
    eta = np.copysign(np.sqrt(np.maximum(-2 * (np.log1p(sigma) - sigma), 0)), sigma)
    total, scale = np.zeros_like(x), np.ones_like(x)
    for row in TEMME:
        total = total + polynomial(eta, row[::-1]) * scale
        scale = scale / a
    tail = np.exp(-0.5 * a * eta * eta) * total / np.sqrt(2 * np.pi * a)
    return 0.5 * erfc(-sign * eta * np.sqrt(a / 2)) - sign * tail
