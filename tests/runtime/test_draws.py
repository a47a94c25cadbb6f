"""The laws: recorded numbers, moments, bounds, permutations, and errors."""

import numpy as np
import pytest

from flambeau.runtime import draws, permutation, trading
from flambeau.runtime.draws import Engine

N = 100_000


class TestRecorded:
    """Numbers that PyTorch's CPU generator gives; tests/oracle compares many more."""

    def test_normals_of_seed_0(self):
        expected = [1.5409960746765137, -0.293428897857666, -2.1787893772125244]
        assert draws.normal(Engine(0), 3).tolist() == expected

    def test_integers_of_seed_0(self):
        assert draws.integers(Engine(0), 3, np.int64, 0, 5).tolist() == [4, 4, 3]
        assert draws.integers(Engine(0), 2, np.int64).tolist() == [
            900450186894289455, 3969543146641149120]

    def test_geometric_and_bernoulli_of_seed_0(self):
        assert draws.geometric(Engine(0), 3, np.int64, 0.5).tolist() == [1, 1, 2]
        assert draws.bernoulli(Engine(0), 3, np.bool_, 0.5).tolist() == [False, False, True]


@pytest.mark.parametrize(("law", "mean", "variance"), [
    (lambda e: draws.uniform(e, N, np.float32, -1, 2), 0.5, 0.75),
    (lambda e: draws.normal(e, N, np.float32, 3, 2), 3, 4),
    (lambda e: draws.normal(e, N, np.float64, 3, 2, contiguous=False), 3, 4),
    (lambda e: draws.log_normal(e, N, np.float64, 0, 0.25), 1.0317, 0.0687),
    (lambda e: draws.exponential(e, N, np.float32, 0.5), 2, 4),
    (lambda e: draws.geometric(e, N, np.float32, 0.25), 4, 12),
    (lambda e: draws.bernoulli(e, N, np.float32, 0.3), 0.3, 0.21),
    (lambda e: draws.dropout_mask(e, N, np.float32, 0.3), 1, 3 / 7),
    (lambda e: draws.integers(e, N, np.int64, -3, 4), 0, 4),
    (lambda e: draws.poisson(e, np.full(N, 3.5, np.float32)), 3.5, 3.5),
    (lambda e: draws.binomial(e, np.full(N, 20.0), np.array(0.3)), 6, 4.2),
    (lambda e: draws.standard_gamma(e, np.full(N, 2.5)), 2.5, 2.5),
    (lambda e: draws.dirichlet(e, np.full((N, 2), 1.5))[:, 0], 0.5, 0.0625),
    (lambda e: draws.multinomial(e, np.array([1.0, 0, 3]), N, True), 1.5, 0.75),
])
def test_mean_and_variance(law, mean, variance):
    numbers = law(Engine(0)).astype(np.float64)
    assert abs(numbers.mean() - mean) < 5 * np.sqrt(variance / N)
    assert abs(numbers.var() - variance) < 0.05 * variance


def test_median_and_quartile_of_cauchy():
    numbers = draws.cauchy(Engine(0), N, np.float32, 2, 3)
    assert np.abs(np.quantile(numbers, [0.25, 0.5, 0.75]) - [-1, 2, 5]).max() < 0.1


@pytest.mark.parametrize("law", [
    draws.uniform, draws.normal, draws.log_normal, draws.exponential, draws.geometric,
    draws.cauchy, draws.bernoulli, draws.dropout_mask, draws.integers])
@pytest.mark.parametrize("shape", [(), (0,), (3, 0), 5, (2, 3, 4), [4, 4]])
def test_shapes_and_types(law, shape):
    for dtype in (np.float32, np.float64, np.float16):
        numbers = law(Engine(0), shape, dtype)
        assert numbers.shape == draws.uniform(Engine(0), shape).shape
        assert numbers.dtype == dtype
        assert numbers.flags.c_contiguous
        assert numbers.flags.writeable


def test_bfloat16():
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    for law in (draws.uniform, draws.normal, draws.exponential, draws.bernoulli, draws.integers):
        assert law(Engine(0), 20, bfloat16).dtype == bfloat16
    assert draws.uniform(Engine(0), N, bfloat16).max() < 1


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_uniform_never_reaches_its_upper_bound(dtype):
    numbers = draws.uniform(Engine(0), N, dtype, 1, 1 + 2.0**-9)
    assert numbers.min() >= 1
    assert numbers.max() < 1 + 2.0**-9


def test_draws_in_pieces_equal_draws_at_once():
    at_once = draws.uniform(Engine(0), 40_000)
    engine = Engine(0)
    assert np.array_equal(at_once, np.concatenate([draws.uniform(engine, 20_000),
                                                   draws.uniform(engine, 20_000)]))


def test_bernoulli_never_and_always():
    assert not draws.bernoulli(Engine(0), 1000, np.bool_, 0.0).any()
    assert draws.bernoulli(Engine(0), 1000, np.bool_, 1.0).all()


def test_rrelu_draws_only_where_it_falls():
    engine = Engine(0)
    x = np.array([1.0, -1.0, 0.0, np.nan, 2.0], np.float32)
    slopes = draws.rrelu_slopes(engine, x, 0.25, 0.5)
    assert slopes[[0, 3, 4]].tolist() == [1, 1, 1]
    assert ((slopes[1:3] >= 0.25) & (slopes[1:3] < 0.5)).all()
    rest = Engine(0)
    rest.words(4)
    assert np.array_equal(engine.words(3), rest.words(3))


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 599, 600, 601, 5000])
def test_native_trades_equal_trades_one_by_one(n):
    words = Engine(n).words(max(n - 1, 0))
    partners = np.arange(n, dtype=np.uint32)
    partners[: n - 1] += words % np.arange(n, 1, -1, dtype=np.uint32)
    one_by_one = permutation.trades_one_by_one(partners)
    assert np.array_equal(trading.traded(words, n), one_by_one)
    assert np.array_equal(permutation.permutation(Engine(n), n), one_by_one)
    assert np.array_equal(np.sort(one_by_one), np.arange(n))


def test_the_inside_out_shuffle_in_pieces(monkeypatch):
    def plainly(n):
        out = list(range(n))
        for i, word in enumerate(Engine(6).wide_words(n).tolist()):
            z = word % (i + 1)
            out[i], out[z] = out[z], i
        return out

    monkeypatch.setattr(permutation, "PIECE", 40)
    assert permutation.drawn_inside_out(Engine(6), 101).tolist() == plainly(101)


def test_multinomial_without_replacement_repeats_nothing():
    weights = np.tile(np.array([0.0, 1, 2, 3], np.float32), (1000, 1))
    places = draws.multinomial(Engine(0), weights, 3)
    assert places.shape == (1000, 3)
    assert (np.sort(places, axis=1) == [1, 2, 3]).all()
    first = np.bincount(places[:, 0], minlength=4) / 1000
    assert np.abs(first - [0, 1 / 6, 2 / 6, 3 / 6]).max() < 0.06


def test_dirichlet_of_tiny_concentrations_is_a_point():
    points = draws.dirichlet(Engine(0), np.full((100, 3), 1e-5, np.float32))
    assert np.allclose(points.sum(axis=1), 1)


def test_binomial_of_odd_parameters():
    counts, p = np.array([-3.0, 3.0, 5.0, np.nan]), np.array([0.5, 1.5, -1.0, 0.5])
    found = draws.binomial(Engine(0), counts, p)
    assert found[:3].tolist() == [0, 3, 0]
    assert np.isnan(found[3])


@pytest.mark.parametrize(("draw", "text"), [
    (lambda e: draws.uniform(e, 3, np.float32, 2, 1), "from must be at most to; got from=2, to=1"),
    (lambda e: draws.uniform(e, 3, np.float32, 0, np.inf), "must be finite numbers of the type"),
    (lambda e: draws.uniform(e, 3, np.float32, -3e38, 3e38), "must be finite numbers of the type"),
    (lambda e: draws.normal(e, 3, np.float32, 0, -1), "std must not be negative; got std=-1"),
    (lambda e: draws.normal_around(e, 0.0, np.array([-1.0])), "every std must be at least 0"),
    (lambda e: draws.log_normal(e, 3, np.float32, 0, 0), "std must be positive; got std=0"),
    (lambda e: draws.exponential(e, 3, np.float32, 0), "lambda must be positive; got lambda=0"),
    (lambda e: draws.cauchy(e, 3, np.float32, 0, -1), "sigma must be positive; got sigma=-1"),
    (lambda e: draws.geometric(e, 3, np.float32, 1), r"p must be in \(0, 1\); got p=1"),
    (lambda e: draws.bernoulli(e, 3, np.float32, 1.5), r"p must be in \[0, 1\]; got p=1.5"),
    (lambda e: draws.bernoulli(e, 1, np.float32, np.array([np.nan])), "every p must be in"),
    (lambda e: draws.dropout_mask(e, 3, np.float32, 1), r"p must be in \[0, 1\); got p=1"),
    (lambda e: draws.integers(e, 3, np.int64, 5, 5), "from must be less than to; got from=5, to=5"),
    (lambda e: draws.integers(e, 3, np.int8, 0, 300), "to - 1 is out of bounds for int8"),
    (lambda e: draws.integers(e, 3, np.uint8, -1, 3), "from is out of bounds for uint8"),
    (lambda e: draws.integers(e, 3, np.bool_, 0, 5), "to - 1 is out of bounds for bool"),
    (lambda e: draws.permutation(e, -1), "n must not be negative"),
    (lambda e: draws.multinomial(e, np.ones(3), 4), "n_sample > prob_dist.size"),
    (lambda e: draws.multinomial(e, np.ones(3), 0), "n_sample <= 0 samples"),
    (lambda e: draws.multinomial(e, np.zeros(3), 1), "sum > 0"),
    (lambda e: draws.multinomial(e, np.array([np.nan, 1]), 1), "must be finite and at least 0"),
    (lambda e: draws.poisson(e, np.array([-1.0])), "every rate must be at least 0"),
    (lambda e: draws.dirichlet(e, np.array([0.0, 1])), "every concentration must be positive"),
])
def test_parameters_out_of_range_are_refused_and_nothing_is_drawn(draw, text):
    engine = Engine(0)
    with pytest.raises(RuntimeError, match=text):
        draw(engine)
    assert np.array_equal(engine.words(3), Engine(0).words(3))
