"""The random state and its distributions agree with torch's, recorded and live."""

import copy
import json
import pickle
import warnings
import zlib

import numpy as np
import pytest
from generator_cases import RECORDS, SEEDS, all_cases, by_torch, by_us, digest, seed_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from wengert.tracer import boxmuller, discrete, rejection, rounding, sampling
from wengert.tracer.generator import DEFAULT_SEED, Generator

CASES = all_cases()
RECORDED = json.loads(RECORDS.read_text())


@pytest.mark.parametrize("name", CASES)
def test_samples_are_the_recorded_ones(name):
    case = CASES[name]
    found, expected = digest(*by_us(case, seed_of(name))), RECORDED[name]
    assert found["state"] == expected["state"]
    if case.exact:
        assert found == expected
    else:
        np.testing.assert_allclose(found["few"], expected["few"], rtol=1e-13, atol=1e-15)


def test_every_record_has_a_case():
    assert RECORDED.keys() == CASES.keys()


@pytest.mark.parametrize("seed", SEEDS)
def test_samples_are_torchs(seed):
    torch = pytest.importorskip("torch")
    for name, case in CASES.items():
        theirs, their_state = by_torch(torch, case, seed)
        ours, our_state = by_us(case, seed)
        assert ours.dtype == theirs.dtype, name
        if case.exact:
            np.testing.assert_array_equal(ours, theirs, name)
            np.testing.assert_array_equal(our_state, their_state, name)
        else:
            np.testing.assert_allclose(ours, theirs, rtol=1e-13, atol=1e-15, err_msg=name)


def test_dropout_keeps_what_torch_keeps():
    torch = pytest.importorskip("torch")
    torch.manual_seed(3)
    theirs = torch.nn.functional.dropout(torch.ones(1000), 0.3).numpy()
    mask = sampling.dropout_mask(Generator().manual_seed(3), 1000, 0.3)
    np.testing.assert_array_equal(mask.astype(np.float32) / np.float32(1 - 0.3), theirs)


def test_known_values():
    # the first numbers everybody has seen
    generator = Generator().manual_seed(0)
    np.testing.assert_allclose(sampling.uniform(generator, 3), [0.4963, 0.7682, 0.0885], atol=5e-5)
    generator.manual_seed(0)
    np.testing.assert_allclose(sampling.normal(generator, 3), [1.5410, -0.2934, -2.1788], atol=5e-5)
    generator.manual_seed(0)
    assert discrete.randperm(generator, 5).tolist() == [4, 0, 1, 3, 2]


def kernel_checksums(start, stop, step):
    index = np.arange(start, stop, step)
    sums = [0, 0, 0]
    for part in np.array_split(index, max(1, index.size >> 16)):
        uniform = (part * 2.0**-24).astype(np.float32)
        values = (boxmuller.radius(uniform), *boxmuller.sine_cosine(uniform))
        sums = [zlib.crc32(v.tobytes(), s) for v, s in zip(values, sums)]
    return sums


def test_single_precision_kernel_on_every_uniform():
    # Note [Fused by way of double]: recorded from the AVX2 kernel itself
    assert kernel_checksums(0, 2**24, 1) == [0x8A4DEE75, 0x5F0BECF0, 0xA70FE6A6]


@given(st.floats(-1e3, 1e3, width=32), st.floats(-1e3, 1e3, width=32), st.integers(0, 2**32 - 1))
# the first draw looks for constants in all that is imported: a second on a busy machine
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
def test_scale_and_shift_rounds_once(scale, shift, seed):
    from fractions import Fraction

    x = np.random.default_rng(seed).random(50)
    for values in (x, x.astype(np.float32)):
        kind = values.dtype.type
        if abs(scale) < 1e-30 or 0 < abs(shift) < 1e-30:
            continue  # products near the smallest numbers are outside the promise
        got = rounding.scale_and_shift(values, scale, shift)
        exact = [Fraction(float(v)) * Fraction(scale) + Fraction(shift) for v in values]
        for value, target in zip(got, exact):
            here = abs(Fraction(float(value)) - target)
            for other in (np.nextafter(value, kind(-np.inf)), np.nextafter(value, kind(np.inf))):
                assert here <= abs(Fraction(float(other)) - target)


def test_bfloat16_rounds_to_nearest_even():
    values = np.array([1.0, 1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-8 + 2**-20, np.inf, np.nan, -0.0])
    got = rounding.round_to_bfloat16(values)
    np.testing.assert_array_equal(got[:4], [1, 1, 1 + 2**-6, 1 + 2**-7])
    assert np.isinf(got[4]) and np.isnan(got[5]) and np.signbit(got[6])
    assert rounding.round_to_bfloat16(np.float32(1)).shape == ()


def test_state_has_torchs_layout():
    generator = Generator().manual_seed(5)
    state = generator.state()
    assert state.dtype == np.uint8 and state.shape == (5056,)
    assert state[:8].view("<u8")[0] == 5
    assert state[8:24].tolist() == [1, 0, 0, 0, 1] + [0] * 11
    sampling.normal(generator, 3)
    state = generator.state()
    assert state[8:12].view("<i4")[0] == 625 - 8 and state[16:24].view("<u8")[0] == 8
    assert state[5040] == 1 and state[5024:5032].view("<f8")[0] == generator.next_normal


def test_states_travel_to_torch_and_back():
    torch = pytest.importorskip("torch")
    for count in (0, 1, 623, 624, 625, 5000):
        theirs, ours = torch.Generator().manual_seed(9), Generator().manual_seed(9)
        torch.rand(count, generator=theirs)
        torch.randn(1, generator=theirs)
        ours.restore(theirs.get_state().numpy())
        np.testing.assert_array_equal(ours.state(), theirs.get_state().numpy())
        theirs.manual_seed(0)
        theirs.set_state(torch.from_numpy(ours.state()))
        expected = torch.randn(20, generator=theirs).numpy()
        np.testing.assert_array_equal(sampling.normal(ours, 20), expected)


@given(st.lists(st.integers(0, 1500), max_size=6), st.integers(-(2**63), 2**64 - 1))
def test_words_do_not_depend_on_how_they_are_asked_for(counts, seed):
    whole = Generator().manual_seed(seed).words(sum(counts))
    generator = Generator().manual_seed(seed)
    parts = [generator.words(count) for count in counts]
    np.testing.assert_array_equal(np.concatenate([np.empty(0, np.uint32), *parts]), whole)
    skipped = Generator().manual_seed(seed)
    for count in counts:
        skipped.skip(count)
    np.testing.assert_array_equal(skipped.state(), generator.state())


def test_copies_run_apart():
    generator = Generator().manual_seed(1)
    sampling.normal(generator, 5)
    copies = [generator.clone_state(), copy.deepcopy(generator)]
    copies.append(pickle.loads(pickle.dumps(generator)))
    expected = sampling.normal(generator, 7)
    for other in copies:
        assert other.initial_seed() == 1
        np.testing.assert_array_equal(sampling.normal(other, 7), expected)


def test_seeds():
    assert Generator().initial_seed() == DEFAULT_SEED
    generator = Generator()
    assert generator.manual_seed(-1) is generator and generator.initial_seed() == 2**64 - 1
    assert generator.manual_seed(np.int64(3)).initial_seed() == 3
    assert generator.seed() == generator.initial_seed()
    low, high = Generator().manual_seed(6), Generator().manual_seed(6 + 2**40)
    np.testing.assert_array_equal(low.words(5), high.words(5))
    for seed in (2**64, -(2**63) - 1):
        with pytest.raises(ValueError, match="Overflow when unpacking"):
            generator.manual_seed(seed)
    for seed in (1.5, True, "1"):
        with pytest.raises(RuntimeError, match="manual_seed expected a long, but got"):
            generator.manual_seed(seed)


def test_bad_states_are_refused():
    generator = Generator()
    with pytest.raises(TypeError, match="RNG state must be"):
        generator.restore(np.zeros(5056))
    with pytest.raises(RuntimeError, match=r"size 5056 but found .* to be 10"):
        generator.restore(np.zeros(10, np.uint8))
    with pytest.raises(RuntimeError, match="Invalid mt19937 state"):
        generator.restore(np.zeros(5056, np.uint8))
    with pytest.raises(RuntimeError, match="only the CPU"):
        Generator("cuda")


ERRORS = [
    ("normal expects std >= 0.0, but found std -1", lambda g: sampling.normal(g, 2, 0, -1)),
    ("all elements of std >= 0.0", lambda g: sampling.normal_around(g, 0.0, -np.ones(2))),
    ("found from=1 > to=0", lambda g: sampling.uniform(g, 2, 1, 0)),
    ("to is out of bounds for c10::Half", lambda g: sampling.uniform(g, 2, 0, 1e9, "float16")),
    ("exceed the limit", lambda g: sampling.uniform(g, 2, -3e38, 3e38)),
    ("not implemented for 'Int'", lambda g: sampling.uniform(g, 2, dtype="int32")),
    ("bernoulli_ expects p to be in", lambda g: sampling.bernoulli(g, 1.5, 2)),
    ("Expected p_in >= 0", lambda g: sampling.bernoulli(g, np.array([1.5]))),
    ("not implemented for 'Long'", lambda g: sampling.bernoulli(g, np.array([1]))),
    ("found lambda=-1", lambda g: sampling.exponential(g, 2, -1)),
    ("you specified Int", lambda g: sampling.exponential(g, 2, dtype="int32")),
    ("you specified int", lambda g: sampling.cauchy(g, 2, dtype="int32")),
    ("found sigma=-1", lambda g: sampling.cauchy(g, 2, 0, -1)),
    ("but got p=1", lambda g: sampling.geometric(g, 2, 1.0)),
    ("found std=0", lambda g: sampling.log_normal(g, 2, 1, 0)),
    ("Lower bound", lambda g: sampling.rrelu_noise(g, np.ones(1), 0.5, 0.1)),
    ("from=5 >= to=5", lambda g: discrete.randint(g, 5, 5, 2)),
    (
        "to - 1 is out of bounds for unsigned char",
        lambda g: discrete.randint(g, 0, 300, 2, "uint8"),
    ),
    ("not implemented for 'Bool'", lambda g: discrete.randperm(g, 2, "bool")),
    ("negative dimension -1", lambda g: discrete.randperm(g, -1)),
    ("uint8_t without overflow", lambda g: discrete.randperm(g, 257, "uint8")),
    ("greater than 2049 for Half", lambda g: discrete.randperm(g, 5000, "float16")),
    ("must be 1 or 2 dim", lambda g: discrete.multinomial(g, np.ones((1, 1, 1)), 1)),
    ("n_sample <= 0", lambda g: discrete.multinomial(g, np.ones(2), 0)),
    ("without replacement", lambda g: discrete.multinomial(g, np.ones(2), 3)),
    ("got: Long", lambda g: discrete.multinomial(g, np.ones(2, np.int64), 1)),
    ("either `inf`, `nan`", lambda g: discrete.multinomial(g, np.array([np.nan, 1]), 1)),
    ("sum of probabilities <= 0", lambda g: discrete.multinomial(g, np.zeros(2), 2)),
    ("entry < 0", lambda g: discrete.multinomial(g, np.array([-1.0, 2]), 3, True)),
    ("infinity or NaN", lambda g: discrete.multinomial(g, np.array([np.inf, 2]), 3, True)),
    ("invalid Poisson rate", lambda g: rejection.poisson(g, np.array([-1.0]))),
    ("not implemented for 'Half'", lambda g: rejection.standard_gamma(g, np.ones(1, np.float16))),
]


@pytest.mark.parametrize("message, call", ERRORS, ids=[m for m, _ in ERRORS])
def test_bad_arguments_are_refused_in_torchs_words(message, call):
    with pytest.raises((RuntimeError, NotImplementedError)) as caught:
        call(Generator())
    assert message in str(caught.value)


def test_integers_beyond_a_floating_dtype_warn():
    generator = Generator()
    with pytest.warns(UserWarning, match="Due to precision limitations float"):
        values = discrete.randint(generator, 0, 2**30, 1000, "float32")
    assert values.max() < 2**30
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert discrete.randint(generator, 0, 65504, 5000, "float16").max() < 65504


def test_empty_samples_draw_nothing():
    generator = Generator()
    before = generator.state()
    assert sampling.normal(generator, (0, 3)).shape == (0, 3)
    assert sampling.uniform(generator, 0).shape == (0,)
    assert rejection.poisson(generator, np.empty(0)).shape == (0,)
    assert discrete.multinomial(generator, np.empty((0, 3)), 2).shape == (0, 2)
    np.testing.assert_array_equal(generator.state(), before)
