"""Every law gives PyTorch's numbers, bit for bit, and leaves the generator in PyTorch's state."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

ml_dtypes = pytest.importorskip("ml_dtypes")

from flambeau.runtime import draws  # noqa: E402

pytestmark = pytest.mark.skipif(
    torch.backends.cpu.get_cpu_capability() == "DEFAULT",
    reason="without AVX2 PyTorch rounds once more")

FLOATS = {
    torch.float32: np.dtype(np.float32),
    torch.float64: np.dtype(np.float64),
    torch.float16: np.dtype(np.float16),
    torch.bfloat16: np.dtype(ml_dtypes.bfloat16),
}
INTEGERS = {
    torch.int64: np.dtype(np.int64), torch.int32: np.dtype(np.int32),
    torch.int16: np.dtype(np.int16), torch.int8: np.dtype(np.int8),
    torch.uint8: np.dtype(np.uint8), torch.bool: np.dtype(np.bool_),
}
SIZES = (0, 1, 15, 16, 17, 31, 100, 1000, 40000)
SEEDS = (0, 1, 42, 2**32 + 7, -1)


def bits(x):
    """Bytes of a tensor or an array: NaN and the sign of zero count."""
    if isinstance(x, torch.Tensor):
        return x.clone(memory_format=torch.contiguous_format).flatten().view(torch.uint8).numpy()
    return np.ascontiguousarray(x).reshape(-1).view(np.uint8)


def same(seeds, theirs, ours):
    """theirs(generator) and ours(engine) give equal bits and leave equal states."""
    for seed in seeds:
        generator, engine = torch.Generator().manual_seed(seed), draws.Engine(seed)
        expected, found = theirs(generator), ours(engine)
        assert tuple(expected.shape) == found.shape
        assert expected.element_size() == found.dtype.itemsize
        assert np.array_equal(bits(expected), bits(found)), (seed, expected, found)
        assert np.array_equal(generator.get_state().numpy(), engine.get_state()), seed


@pytest.fixture(params=FLOATS, ids=str)
def kinds(request):
    return request.param, FLOATS[request.param]


@pytest.fixture(params=FLOATS | INTEGERS, ids=str)
def all_kinds(request):
    return request.param, (FLOATS | INTEGERS)[request.param]


@pytest.mark.parametrize("size", SIZES)
class TestContinuous:
    @pytest.mark.parametrize(("low", "high"), [(0, 1), (-0.3, 0.9), (0, 0.02), (5, 5), (-3, 0)])
    def test_uniform(self, kinds, size, low, high):
        theirs, mine = kinds
        same(SEEDS, lambda g: torch.empty(size, dtype=theirs).uniform_(low, high, generator=g),
             lambda e: draws.uniform(e, size, mine, low, high))

    @pytest.mark.parametrize(("mean", "std"), [(0, 1), (0, 0.02), (0.3, 0.7), (2.0, 0.0)])
    def test_normal(self, kinds, size, mean, std):
        theirs, mine = kinds
        same(SEEDS, lambda g: torch.empty(size, dtype=theirs).normal_(mean, std, generator=g),
             lambda e: draws.normal(e, size, mine, mean, std))

    @pytest.mark.parametrize(("mean", "std"), [(0, 1), (0.3, 0.7)])
    def test_normal_into_memory_with_gaps(self, kinds, size, mean, std):
        theirs, mine = kinds
        same(SEEDS,
             lambda g: torch.empty(2 * size, dtype=theirs)[::2].normal_(mean, std, generator=g),
             lambda e: draws.normal(e, size, mine, mean, std, contiguous=size < 2))

    @pytest.mark.parametrize(("mean", "std"), [(1, 2), (0.3, 0.7)])
    def test_log_normal(self, kinds, size, mean, std):
        theirs, mine = kinds
        same(SEEDS, lambda g: torch.empty(size, dtype=theirs).log_normal_(mean, std, generator=g),
             lambda e: draws.log_normal(e, size, mine, mean, std))

    @pytest.mark.parametrize("rate", [1.0, 1.7])
    def test_exponential(self, kinds, size, rate):
        theirs, mine = kinds
        same(SEEDS, lambda g: torch.empty(size, dtype=theirs).exponential_(rate, generator=g),
             lambda e: draws.exponential(e, size, mine, rate))

    @pytest.mark.parametrize(("median", "sigma"), [(0, 1), (0.3, 1.3)])
    def test_cauchy(self, kinds, size, median, sigma):
        theirs, mine = kinds
        same(SEEDS, lambda g: torch.empty(size, dtype=theirs).cauchy_(median, sigma, generator=g),
             lambda e: draws.cauchy(e, size, mine, median, sigma))

    @pytest.mark.parametrize("p", [0.3, 0.01])
    def test_geometric(self, kinds, size, p):
        theirs, mine = kinds
        same(SEEDS, lambda g: torch.empty(size, dtype=theirs).geometric_(p, generator=g),
             lambda e: draws.geometric(e, size, mine, p))


@pytest.mark.parametrize("size", SIZES)
class TestDiscrete:
    @pytest.mark.parametrize("p", [0, 0.3, 1])
    def test_bernoulli_of_a_number(self, all_kinds, size, p):
        theirs, mine = all_kinds
        same(SEEDS, lambda g: torch.empty(size, dtype=theirs).bernoulli_(p, generator=g),
             lambda e: draws.bernoulli(e, size, mine, p))

    def test_bernoulli_of_an_array(self, kinds, size):
        theirs, mine = kinds
        p = torch.rand(size).to(theirs)
        p_array = p.float().numpy().astype(mine) if size else np.zeros(0, mine)
        p_array = p.numpy() if theirs == torch.float64 else p_array
        same(SEEDS, lambda g: torch.bernoulli(p, generator=g),
             lambda e: draws.bernoulli(e, size, mine, p_array))

    def test_geometric_in_integers(self, size):
        same(SEEDS, lambda g: torch.empty(size, dtype=torch.int64).geometric_(0.1, generator=g),
             lambda e: draws.geometric(e, size, np.int64, 0.1))

    def test_any_integers(self, all_kinds, size):
        theirs, mine = all_kinds
        same(SEEDS, lambda g: torch.empty(size, dtype=theirs).random_(generator=g),
             lambda e: draws.integers(e, size, mine))

    def test_integers_up_to_the_largest(self, all_kinds, size):
        theirs, mine = all_kinds
        low = 0 if theirs == torch.bool else 5
        same(SEEDS, lambda g: torch.empty(size, dtype=theirs).random_(low, None, generator=g),
             lambda e: draws.integers(e, size, mine, low))

    @pytest.mark.parametrize(("low", "high"), [
        (0, 1), (0, 2), (-5, 100), (0, 2**28 - 1), (0, 2**28), (-(2**27), 2**27), (0, 2**32),
        (0, 2**40), (-(2**62), 2**62), (0, 2**63 - 1), (-(2**63), 2**63 - 1)])
    def test_randint(self, size, low, high):
        same(SEEDS, lambda g: torch.randint(low, high, (size,), generator=g),
             lambda e: draws.integers(e, size, np.int64, low, high))


@pytest.mark.parametrize("n", [0, 1, 2, 3, 10, 599, 600, 601, 30000])
def test_randperm(n):
    same(SEEDS, lambda g: torch.randperm(n, generator=g), lambda e: draws.permutation(e, n))


def test_the_whole_range_of_int64():
    same(SEEDS, lambda g: torch.empty(99, dtype=torch.int64).random_(-(2**63), None, generator=g),
         lambda e: draws.integers(e, 99, np.int64, -(2**63)))


@pytest.mark.filterwarnings("ignore:to - 1 is out of bounds:UserWarning")
@pytest.mark.parametrize("high", [
    2**8, 2**8 + 3, 2**11 + 1, 2**11 + 5, 2**24 + 1, 2**24 + 3, 2**26, 2**40, 2**53 + 1, 2**53 + 3])
def test_integers_that_a_float_type_cannot_hold(kinds, high):
    theirs, mine = kinds
    if theirs == torch.float16 and high > 65504:
        with pytest.raises(RuntimeError, match="out of bounds"):
            draws.integers(draws.Engine(), 9, mine, 0, high)
        return
    same(SEEDS, lambda g: torch.empty(999, dtype=theirs).random_(0, high, generator=g),
         lambda e: draws.integers(e, 999, mine, 0, high))


def test_a_million_permuted():
    same((3,), lambda g: torch.randperm(10**6, generator=g),
         lambda e: draws.permutation(e, 10**6))


@pytest.mark.parametrize("shape", [(1,), (7,), (8,), (9,), (3, 50)])
@pytest.mark.parametrize(("theirs", "mine"), [
    (torch.complex64, np.complex64), (torch.complex128, np.complex128)], ids=str)
def test_complex(shape, theirs, mine):
    def empty():
        return torch.empty(shape, dtype=theirs)

    same(SEEDS, lambda g: torch.randn(shape, dtype=theirs, generator=g),
         lambda e: draws.normal(e, shape, mine))
    same(SEEDS, lambda g: empty().normal_(1, 2, generator=g),
         lambda e: draws.normal(e, shape, mine, 1, 2))
    same(SEEDS, lambda g: empty().uniform_(-1, 2, generator=g),
         lambda e: draws.uniform(e, shape, mine, -1, 2))


@pytest.mark.parametrize("size", [1, 5, 16, 20, 1000])
def test_normal_around_arrays(kinds, size):
    theirs, mine = kinds
    mean, std = torch.linspace(-1, 1, size).to(theirs), torch.linspace(0.1, 2, size).to(theirs)
    means, stds = (x.double().numpy().astype(mine) for x in (mean, std))
    same(SEEDS, lambda g: torch.normal(mean, std, generator=g),
         lambda e: draws.normal_around(e, means, stds))
    same(SEEDS, lambda g: torch.normal(mean, 0.7, generator=g),
         lambda e: draws.normal_around(e, means, 0.7))
    same(SEEDS, lambda g: torch.normal(0.3, std, generator=g),
         lambda e: draws.normal_around(e, 0.3, stds))


@pytest.mark.parametrize("theirs", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("shape", [(5,), (50,), (7, 30), (2, 10000)])
@pytest.mark.parametrize("replacement", [False, True])
@pytest.mark.parametrize("count", [1, 3, 5])
def test_multinomial(theirs, shape, replacement, count):
    weights = torch.rand(shape, dtype=theirs, generator=torch.Generator().manual_seed(1)) + 0.01
    same(SEEDS, lambda g: torch.multinomial(weights, count, replacement, generator=g),
         lambda e: draws.multinomial(e, weights.numpy(), count, replacement))


@pytest.mark.parametrize("count", [1, 5])
def test_multinomial_in_16_bits(kinds, count):
    theirs, mine = kinds
    weights = (torch.rand(50, generator=torch.Generator().manual_seed(5)) + 0.01).to(theirs)
    same(SEEDS, lambda g: torch.multinomial(weights, count, True, generator=g),
         lambda e: draws.multinomial(e, weights.double().numpy().astype(mine), count, True))


@pytest.mark.parametrize("p", [0.1, 0.5, 0.75])
def test_dropout(kinds, p):
    theirs, mine = kinds
    x = torch.rand(1000).to(theirs) + 1
    for seed in SEEDS:
        torch.manual_seed(seed)
        expected = torch.nn.functional.dropout(x, p)
        mask = draws.dropout_mask(draws.Engine(seed), 1000, mine, p)
        assert np.array_equal(bits(expected), bits(x.double().numpy().astype(mine) * mask))


def test_rrelu(kinds):
    theirs, mine = kinds
    if theirs == torch.float16:
        pytest.skip("PyTorch has no rrelu in float16")
    x = torch.randn(2, 3, 40, generator=torch.Generator().manual_seed(0)).to(theirs)
    wide = x.double().numpy().astype(np.float64 if theirs == torch.float64 else np.float32)
    for seed in SEEDS:
        torch.manual_seed(seed)
        expected = torch.nn.functional.rrelu(x, 0.1, 0.3, True)
        slopes = draws.rrelu_slopes(draws.Engine(seed), wide.astype(mine), 0.1, 0.3)
        assert np.array_equal(bits(expected), bits((wide * slopes).astype(mine)))


@pytest.mark.parametrize("size", [1, 15, 16, 40])
def test_the_cached_normal_outlives_other_draws(size):
    for seed in SEEDS:
        g, e = torch.Generator().manual_seed(seed), draws.Engine(seed)
        expected = [torch.randn(1, generator=g), torch.randn(size, generator=g),
                    torch.rand(3, generator=g),
                    torch.randn(2, dtype=torch.float64, generator=g),
                    torch.empty(3).log_normal_(generator=g), torch.randn(size, generator=g)]
        found = [draws.normal(e, 1), draws.normal(e, size), draws.uniform(e, 3),
                 draws.normal(e, 2, np.float64), draws.log_normal(e, 3), draws.normal(e, size)]
        for x, y in zip(expected, found, strict=True):
            assert np.array_equal(bits(x), bits(y))
        assert np.array_equal(g.get_state().numpy(), e.get_state())


@pytest.mark.parametrize("seed", [*range(9), 2**31, 2**32 - 1, 2**32, 2**63, 2**64 - 1, -7, -2**63])
def test_seeds(seed):
    same((seed,), lambda g: torch.rand(700, generator=g), lambda e: draws.uniform(e, 700))
    assert draws.Engine(seed).initial_seed() == torch.Generator().manual_seed(seed).initial_seed()


@pytest.mark.parametrize("words", [0, 1, 5, 623, 624, 625, 1300])
def test_states_both_ways(words):
    g, e = torch.Generator().manual_seed(9), draws.Engine(9)
    torch.rand(words, generator=g)
    e.words(words)
    assert np.array_equal(g.get_state().numpy(), e.get_state())
    torch.randn(3, generator=g)
    continued = draws.Engine(1).set_state(g.get_state().numpy())
    back = torch.Generator().set_state(torch.from_numpy(continued.get_state()))
    for size in (700, 7, 7):
        expected = torch.randn(size, generator=g)
        assert np.array_equal(bits(expected), bits(draws.normal(continued, size)))
        assert torch.equal(expected, torch.randn(size, generator=back))


def test_a_fresh_generator():
    g, e = torch.Generator(), draws.Engine()
    assert g.initial_seed() == e.initial_seed()
    assert np.array_equal(g.get_state().numpy(), e.get_state())


def test_large_draws(kinds):
    theirs, mine = kinds
    n = 1_000_003
    same((5,), lambda g: torch.randn(n, dtype=theirs, generator=g),
         lambda e: draws.normal(e, n, mine))
    same((5,), lambda g: torch.empty(n, dtype=theirs).uniform_(-0.1, 3, generator=g),
         lambda e: draws.uniform(e, n, mine, -0.1, 3))
    same((5,), lambda g: torch.empty(n, dtype=theirs).exponential_(generator=g),
         lambda e: draws.exponential(e, n, mine))
