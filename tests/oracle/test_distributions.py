"""Every distribution, transform and divergence against PyTorch's, in float64."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import torch.distributions as theirs  # noqa: E402

import flambeau  # noqa: E402
import flambeau.distributions as ours  # noqa: E402

SIDES = [(flambeau, ours), (torch, theirs)]

POS, REAL, UNIT, SIMPLEX = "positive", "real", "unit", "simplex"

# name -> (parameters by kind, or by value), further keyword arguments
CASES = {
    "Normal": dict(loc=REAL, scale=POS),
    "LogNormal": dict(loc=REAL, scale=POS),
    "Laplace": dict(loc=REAL, scale=POS),
    "Cauchy": dict(loc=REAL, scale=POS),
    "Gumbel": dict(loc=REAL, scale=POS),
    "HalfNormal": dict(scale=POS),
    "HalfCauchy": dict(scale=POS),
    "Exponential": dict(rate=POS),
    "Poisson": dict(rate=POS),
    "Gamma": dict(concentration=POS, rate=POS),
    "InverseGamma": dict(concentration=POS, rate=POS),
    "Chi2": dict(df=POS),
    "StudentT": dict(df=POS, loc=REAL, scale=POS),
    "FisherSnedecor": dict(df1=POS, df2=POS),
    "Beta": dict(concentration1=POS, concentration0=POS),
    "Kumaraswamy": dict(concentration1=POS, concentration0=POS),
    "Weibull": dict(scale=POS, concentration=POS),
    "Pareto": dict(scale=POS, alpha=POS),
    "Uniform": dict(low=REAL, high="above"),
    "Bernoulli": dict(probs=UNIT),
    "ContinuousBernoulli": dict(probs=UNIT),
    "Geometric": dict(probs=UNIT),
    "Binomial": dict(total_count=5, probs=UNIT),
    "NegativeBinomial": dict(total_count=5, probs=UNIT),
    "Categorical": dict(probs=SIMPLEX),
    "OneHotCategorical": dict(probs=SIMPLEX),
    "OneHotCategoricalStraightThrough": dict(probs=SIMPLEX),
    "Multinomial": dict(total_count=4, probs=SIMPLEX),
    "Dirichlet": dict(concentration=POS),
    "LogisticNormal": dict(loc=REAL, scale=POS),
    "RelaxedBernoulli": dict(temperature="scalar", probs=UNIT),
    "RelaxedOneHotCategorical": dict(temperature="scalar", probs=SIMPLEX),
    "MultivariateNormal": dict(loc=REAL, covariance_matrix="matrix"),
    "LowRankMultivariateNormal": dict(loc=REAL, cov_factor="factor", cov_diag=POS),
}
BY_LOGITS = ["Bernoulli", "Categorical", "Binomial", "Geometric", "NegativeBinomial",
             "OneHotCategorical", "ContinuousBernoulli", "Multinomial"]
# Not drawn by one of the generators that are PyTorch's bit for bit.
OTHER_DRAWS = {"Poisson", "Gamma", "InverseGamma", "Chi2", "StudentT", "FisherSnedecor", "Beta",
               "Dirichlet", "Binomial", "NegativeBinomial"}
SHAPE = (2, 3)


def numbers(kind, seed):
    random = np.random.RandomState(seed)
    real = random.randn(*SHAPE)
    return {
        REAL: real,
        POS: np.exp(0.5 * real) + 0.2,
        UNIT: 0.05 + 0.9 * random.rand(*SHAPE),
        SIMPLEX: random.dirichlet(np.ones(3), 2),
        "above": real + 20.0,
        "scalar": np.array(0.7),
        "matrix": (lambda a: a @ a.transpose(0, 2, 1) + np.eye(3))(random.randn(2, 3, 3)),
        "factor": random.randn(2, 3, 2),
    }[kind]


def parameters(framework, name, seed=0, logits=False):
    made = {}
    for i, (key, kind) in enumerate(CASES[name].items()):
        if logits and key == "probs":
            key, kind = "logits", REAL
        made[key] = framework.tensor(numbers(kind, seed + i)) if isinstance(kind, str) else kind
    return made


def both(name, **arguments):
    return [getattr(module, name)(**parameters(framework, name, **arguments))
            for framework, module in SIDES]


def values(x):
    return x.detach().numpy() if hasattr(x, "detach") else x


def close(mine, reference, **tolerance):
    np.testing.assert_allclose(values(mine), values(reference),
                               **{"rtol": 1e-7, "atol": 1e-9, **tolerance})
    assert tuple(mine.shape) == tuple(reference.shape)
    assert str(mine.dtype) == str(reference.dtype)


def attempt(action):
    """The result, or the class of the exception."""
    try:
        return action()
    except NotImplementedError:
        return NotImplementedError


def agree(mine, reference, read, **tolerance):
    got, expected = attempt(lambda: read(mine)), attempt(lambda: read(reference))
    if expected is NotImplementedError or got is NotImplementedError:
        assert got is expected
    else:
        close(got, expected, **tolerance)


ALL = [(name, False) for name in CASES] + [(name, True) for name in BY_LOGITS]


@pytest.mark.parametrize(("name", "logits"), ALL)
def test_moments_shapes_and_text(name, logits):
    mine, reference = both(name, logits=logits)
    # PyTorch's mode is NaN for these where it is plainly there, or at the edge.
    wrong = {"Kumaraswamy": ["mode"], "Weibull": ["mode"]}.get(name, [])
    for what in {"mean", "variance", "stddev", "mode"}.difference(wrong):
        agree(mine, reference, lambda d, what=what: getattr(d, what))
    assert tuple(mine.batch_shape) == tuple(reference.batch_shape)
    assert tuple(mine.event_shape) == tuple(reference.event_shape)
    assert mine.has_rsample == reference.has_rsample
    assert repr(mine.support) == repr(reference.support)
    assert set(mine.arg_constraints) == set(reference.arg_constraints)


@pytest.mark.parametrize(("name", "logits"), ALL)
def test_densities(name, logits):
    mine, reference = both(name, logits=logits)
    torch.manual_seed(3)
    x = reference.sample((4,))
    y = flambeau.tensor(x.numpy())
    agree(mine, reference, lambda d: d.log_prob(x if d is reference else y))
    agree(mine, reference, lambda d: d.cdf(x if d is reference else y))
    agree(mine, reference, lambda d: d.entropy())
    u = np.random.RandomState(0).rand(4, *SHAPE)
    if name in ("LogisticNormal", "MultivariateNormal"):
        return
    agree(mine, reference,
          lambda d: d.icdf(torch.tensor(u) if d is reference else flambeau.tensor(u)))


@pytest.mark.parametrize("name", CASES)
def test_samples(name):
    drawn = []
    for framework, distribution in zip((flambeau, torch), both(name), strict=True):
        framework.manual_seed(7)
        drawn.append((distribution.sample((5,)), distribution.sample()))
    for mine, reference in zip(*drawn, strict=True):
        assert tuple(mine.shape) == tuple(reference.shape)
        assert str(mine.dtype) == str(reference.dtype)
        assert not mine.requires_grad
        if name not in OTHER_DRAWS:
            close(mine, reference)


@pytest.mark.parametrize("name", [n for n in CASES if n not in OTHER_DRAWS])
def test_gradients_reach_the_parameters_through_samples_and_densities(name):
    results = []
    for framework, module in SIDES:
        framework.manual_seed(7)
        given = parameters(framework, name)
        leaves = [p.requires_grad_() for p in given.values() if hasattr(p, "requires_grad_")]
        distribution = getattr(module, name)(**given)
        drawn = distribution.rsample() if distribution.has_rsample else distribution.sample()
        loss = distribution.log_prob(drawn.detach()).sum()
        if distribution.has_rsample:
            loss = loss + (drawn**2).sum()
        loss.backward()
        results.append([p.grad for p in leaves])
    for mine, reference in zip(*results, strict=True):
        assert (mine is None) == (reference is None)
        if mine is not None:
            close(mine, reference, rtol=1e-6)


@pytest.mark.parametrize("a", [0.05, 0.5, 1.0, 3.0, 50.0, 2000.0])
def test_gradients_of_gamma_samples(a):
    """PyTorch approximates them to about 5e-4; tests/distributions has a sharper check."""
    from flambeau.distributions.gamma import sample_gradient

    torch.manual_seed(0)
    concentration = torch.full((200,), a, dtype=torch.float64)
    z = torch._standard_gamma(concentration)
    expected = torch._standard_gamma_grad(concentration, z)
    got = sample_gradient(flambeau.tensor(concentration.numpy()), flambeau.tensor(z.numpy()))
    np.testing.assert_allclose(got.numpy(), expected.numpy(), rtol=1e-3, atol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_expand(name):
    mine, reference = both(name)
    shape = (4, *reference.batch_shape)
    wide, expected = mine.expand(shape), reference.expand(shape)
    assert type(wide) is type(mine)
    assert tuple(wide.batch_shape) == tuple(expected.batch_shape)
    agree(wide, expected, lambda d: d.mean)
    torch.manual_seed(1)
    x = expected.sample()
    agree(wide, expected,
          lambda d: d.log_prob(x if d is expected else flambeau.tensor(x.numpy())))


@pytest.mark.parametrize("name", ["Bernoulli", "Binomial", "Categorical", "OneHotCategorical"])
@pytest.mark.parametrize("expand", [True, False])
def test_enumerated_supports(name, expand):
    mine, reference = both(name)
    close(mine.enumerate_support(expand), reference.enumerate_support(expand))


PAIRS = [(n, n) for n in CASES if n not in (
    "StudentT", "FisherSnedecor", "Kumaraswamy", "Weibull", "Multinomial",
    "NegativeBinomial", "LogisticNormal", "RelaxedBernoulli", "RelaxedOneHotCategorical",
    "HalfCauchy", "OneHotCategoricalStraightThrough", "InverseGamma")]
PAIRS += [("Bernoulli", "Poisson"), ("Exponential", "Gamma"), ("Gamma", "Exponential"),
          ("Laplace", "Normal"), ("Uniform", "Normal"), ("Exponential", "Normal"),
          ("Beta", "Uniform"), ("Beta", "Normal"), ("Gamma", "Normal"), ("Gumbel", "Normal"),
          ("ContinuousBernoulli", "Normal"), ("Pareto", "Normal"), ("Beta", "Exponential"),
          ("ContinuousBernoulli", "Exponential"), ("Pareto", "Exponential"),
          ("Uniform", "Exponential"), ("Beta", "Gamma"), ("Pareto", "Gamma"),
          ("Uniform", "Gamma"), ("Normal", "Gamma"), ("Laplace", "Uniform"), ("Gumbel", "Beta"),
          ("Exponential", "Uniform"), ("Pareto", "Beta"), ("Poisson", "Binomial"),
          ("MultivariateNormal", "LowRankMultivariateNormal"),
          ("LowRankMultivariateNormal", "MultivariateNormal")]


@pytest.mark.parametrize(("p", "q"), PAIRS)
def test_divergences(p, q):
    results = []
    for framework, module in SIDES:
        left = getattr(module, p)(**parameters(framework, p))
        right = getattr(module, q)(**parameters(framework, q, seed=10))
        results.append(module.kl_divergence(left, right))
    close(*results)


def test_a_divergence_that_pytorch_lacks():
    """Normal | Laplace, against a sum over a fine grid."""
    p, q = ours.Normal(0.3, 0.7), ours.Laplace(-0.5, 1.2)
    x = flambeau.linspace(-8, 8, 40_001, dtype=flambeau.float64)
    terms = p.log_prob(x).exp() * (p.log_prob(x) - q.log_prob(x))
    assert abs(ours.kl_divergence(p, q).item() - terms.sum().item() * 16 / 40_000) < 1e-5


TRANSFORMS = {
    "ExpTransform": ([], REAL), "SigmoidTransform": ([], REAL), "SoftplusTransform": ([], REAL),
    "TanhTransform": ([], REAL), "AffineTransform": ([0.3, -2.0], REAL),
    "PowerTransform": ([1.7], POS), "StickBreakingTransform": ([], REAL),
    "LowerCholeskyTransform": ([], "matrix"), "PositiveDefiniteTransform": ([], "matrix"),
    "CorrCholeskyTransform": ([], REAL), "SoftmaxTransform": ([], REAL),
    "AbsTransform": ([], REAL), "ReshapeTransform": ([(3,), (3, 1)], REAL),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms(name):
    arguments, kind = TRANSFORMS[name]
    rows = []
    for framework, module in SIDES:
        given = [framework.tensor(a, dtype=framework.float64) if name == "PowerTransform" else a
                 for a in arguments]
        transform = getattr(module, name)(*given)
        x = framework.tensor(numbers(kind, 3))
        y = transform(x)
        rows.append((transform, x, y))
    (mine, a, b), (reference, c, d) = rows
    close(b, d)
    close(mine.inv(b), reference.inv(d))
    agree(mine, reference, lambda t: t.log_abs_det_jacobian(a, b) if t is mine
          else t.log_abs_det_jacobian(c, d))
    assert mine.bijective == reference.bijective
    assert repr(mine.domain) == repr(reference.domain)
    assert repr(mine.codomain) == repr(reference.codomain)
    assert tuple(mine.forward_shape(a.shape)) == tuple(reference.forward_shape(c.shape))


def composed(module, framework):
    base = module.Normal(framework.zeros(2, 3, dtype=framework.float64), 1.0)
    return module.TransformedDistribution(base, [
        module.AffineTransform(1.0, 2.0), module.SigmoidTransform(),
        module.AffineTransform(framework.tensor([1.0, 2.0, 3.0], dtype=framework.float64), -3.0)])


def stacked(module, framework):
    base = module.Independent(module.Normal(framework.zeros(2, 3, dtype=framework.float64), 1.0), 1)
    return module.TransformedDistribution(base, [
        module.AffineTransform(0.5, 2.0), module.StickBreakingTransform()])


def mixture(module, framework):
    weights = framework.tensor([[0.2, 0.8], [0.5, 0.5]], dtype=framework.float64)
    loc = framework.tensor([[0.0, 1.0], [2.0, -1.0]], dtype=framework.float64)
    return module.MixtureSameFamily(module.Categorical(weights), module.Normal(loc, 0.5))


def mixture_of_vectors(module, framework):
    weights = framework.tensor([0.2, 0.8], dtype=framework.float64)
    loc = framework.tensor([[0.0, 1.0, 2.0], [2.0, -1.0, 0.0]], dtype=framework.float64)
    return module.MixtureSameFamily(
        module.Categorical(weights), module.Independent(module.Normal(loc, 0.5), 1))


@pytest.mark.parametrize("make", [composed, stacked, mixture, mixture_of_vectors])
def test_composites(make):
    mine, reference = make(ours, flambeau), make(theirs, torch)
    assert tuple(mine.batch_shape) == tuple(reference.batch_shape)
    assert tuple(mine.event_shape) == tuple(reference.event_shape)
    flambeau.manual_seed(2)
    torch.manual_seed(2)
    x, y = mine.sample((4,)), reference.sample((4,))
    close(x, y)
    close(mine.log_prob(x), reference.log_prob(y))
    agree(mine, reference, lambda d: d.mean)
    agree(mine, reference, lambda d: d.variance)
    agree(mine, reference, lambda d: d.cdf(x if d is mine else y))
    close(mine.expand((5, *mine.batch_shape)).log_prob(x[0]),
          reference.expand((5, *reference.batch_shape)).log_prob(y[0]))


@pytest.mark.parametrize("read", [
    lambda c: c.positive, lambda c: c.unit_interval, lambda c: c.interval(-1.0, 2.0),
    lambda c: c.less_than(3.0), lambda c: c.greater_than(3.0), lambda c: c.real,
    lambda c: c.simplex, lambda c: c.lower_cholesky, lambda c: c.positive_definite,
    lambda c: c.independent(c.positive, 1), lambda c: c.corr_cholesky])
@pytest.mark.parametrize("way", ["transform_to", "biject_to"])
def test_ways_to_a_constraint(read, way):
    matrix = repr(read(theirs.constraints)) in ("LowerCholesky()", "PositiveDefinite()")
    if matrix and way == "biject_to":
        pytest.skip("PyTorch has no such way")
    raw = np.random.RandomState(0).randn(*((3, 3) if matrix else (6,)))
    got = getattr(ours, way)(read(ours.constraints))(flambeau.tensor(raw))
    expected = getattr(theirs, way)(read(theirs.constraints))(torch.tensor(raw))
    close(got, expected)
    assert bool(read(ours.constraints).check(got).all())


@pytest.mark.parametrize(("text", "error"), [
    ("d.Normal(0.0, -1.0)", ValueError), ("d.Normal(f.tensor(float('nan')), 1.0)", ValueError),
    ("d.Normal(0.0, 1.0).log_prob(3.0)", ValueError),
    ("d.Normal(f.zeros(3), 1.0).log_prob(f.zeros(2))", ValueError),
    ("d.Bernoulli(0.5).log_prob(f.tensor(2.0))", ValueError), ("d.Bernoulli()", ValueError),
    ("d.Bernoulli(0.5, 0.5)", ValueError), ("d.Categorical(f.tensor(0.5))", ValueError),
    ("d.Categorical(f.tensor([-0.5, 1.5]))", ValueError),
    ("d.Uniform(1.0, 0.0)", ValueError), ("d.Dirichlet(f.tensor(1.0))", ValueError),
    ("d.MultivariateNormal(f.zeros(2))", ValueError),
    ("d.MultivariateNormal(f.zeros(2), -f.eye(2))", ValueError),
    ("d.Independent(d.Normal(0.0, 1.0), 1)", ValueError),
    ("d.Normal('a', 1.0)", ValueError),
    ("d.kl_divergence(d.Normal(0.0, 1.0), d.Poisson(1.0))", NotImplementedError),
    ("d.Poisson(1.0).rsample()", NotImplementedError),
    ("d.Normal(0.0, 1.0).enumerate_support()", NotImplementedError),
    ("d.Beta(1.0, 1.0).cdf(f.tensor(0.5))", NotImplementedError),
])
def test_wrong_use(text, error):
    for framework, module in SIDES:
        with pytest.raises(error):
            eval(text, {"d": module, "f": framework})
