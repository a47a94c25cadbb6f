"""Distributions against themselves: densities integrate to 1, samples have the moments."""

import copy
import math
import pickle

import pytest

import flambeau as torch
import flambeau.distributions as d

# Built when a test runs, so that a failure names one of them.
CONTINUOUS = {
    "normal": lambda: d.Normal(0.5, 1.5),
    "log normal": lambda: d.LogNormal(0.1, 0.4),
    "laplace": lambda: d.Laplace(-0.5, 0.8),
    "gumbel": lambda: d.Gumbel(0.2, 0.7),
    "half normal": lambda: d.HalfNormal(1.3),
    "exponential": lambda: d.Exponential(1.4),
    "gamma": lambda: d.Gamma(2.5, 1.5),
    "inverse gamma": lambda: d.InverseGamma(6.0, 4.0),
    "chi2": lambda: d.Chi2(3.0),
    "student": lambda: d.StudentT(9.0, 0.5, 1.2),
    "f": lambda: d.FisherSnedecor(6.0, 20.0),
    "beta": lambda: d.Beta(2.0, 3.0),
    "kumaraswamy": lambda: d.Kumaraswamy(2.0, 3.0),
    "weibull": lambda: d.Weibull(1.2, 1.8),
    "pareto": lambda: d.Pareto(1.0, 6.0),
    "generalized pareto": lambda: d.GeneralizedPareto(0.5, 1.0, 0.1),
    "generalized pareto, bounded": lambda: d.GeneralizedPareto(0.0, 1.0, -0.3),
    "generalized pareto, exponential": lambda: d.GeneralizedPareto(0.0, 1.0, 0.0),
    "uniform": lambda: d.Uniform(-1.0, 2.0),
    "continuous bernoulli": lambda: d.ContinuousBernoulli(0.3),
    "continuous bernoulli, middle": lambda: d.ContinuousBernoulli(0.5),
    "relaxed bernoulli": lambda: d.RelaxedBernoulli(torch.tensor(0.8), 0.4),
    "mixture": lambda: d.MixtureSameFamily(d.Categorical(torch.tensor([0.3, 0.7])),
                                           d.Normal(torch.tensor([-1.0, 2.0]), 0.6)),
}
DISCRETE = {
    "bernoulli": lambda: d.Bernoulli(0.3),
    "geometric": lambda: d.Geometric(0.4),
    "binomial": lambda: d.Binomial(6, torch.tensor(0.3)),
    "negative binomial": lambda: d.NegativeBinomial(3.0, torch.tensor(0.4)),
    "poisson": lambda: d.Poisson(2.5),
}


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


def expectation(distribution, function):
    """The integral of function(x) p(x), over a grid of the support where p is not tiny."""
    support, low, high = distribution.support, -60.0, 60.0
    low = max(low, float(getattr(support, "lower_bound", low)))
    high = min(high, float(getattr(support, "upper_bound", high)))
    step = (high - low) / 400_000
    x = low + step * (torch.arange(400_000, dtype=torch.float64) + 0.5)
    return (function(x) * distribution.log_prob(x).exp()).sum().item() * step


@pytest.mark.parametrize("name", CONTINUOUS)
def test_densities_integrate_to_one_with_the_stated_mean(name):
    distribution = CONTINUOUS[name]()
    assert expectation(distribution, torch.ones_like) == pytest.approx(1, abs=2e-3)
    if name != "relaxed bernoulli":
        mean = distribution.mean.item()
        assert expectation(distribution, lambda x: x) == pytest.approx(mean, rel=5e-3, abs=2e-3)


@pytest.mark.parametrize("name", DISCRETE)
def test_masses_sum_to_one_with_the_stated_moments(name):
    distribution = DISCRETE[name]()
    support = distribution.support
    top = getattr(support, "upper_bound", 1 if name == "bernoulli" else 150)
    k = torch.arange(float(top) + 1)
    mass = distribution.log_prob(k).exp()
    assert mass.sum().item() == pytest.approx(1, abs=1e-5)
    mean = (mass * k).sum().item()
    assert mean == pytest.approx(distribution.mean.item(), rel=1e-4)
    spread = (mass * (k - mean) ** 2).sum().item()
    assert spread == pytest.approx(distribution.variance.item(), rel=1e-4)


@pytest.mark.parametrize("name", [*CONTINUOUS, *DISCRETE])
def test_samples_lie_in_the_support_and_have_the_moments(name):
    distribution = {**CONTINUOUS, **DISCRETE}[name]()
    x = distribution.sample((40_000,))
    assert distribution.support.check(x).all()
    if name == "relaxed bernoulli":
        return
    mean, deviation = distribution.mean.item(), distribution.stddev.item()
    assert x.mean().item() == pytest.approx(mean, abs=0.03 * deviation)
    assert x.std().item() == pytest.approx(deviation, rel=0.1)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_the_inverse_of_the_distribution_function(name):
    distribution = CONTINUOUS[name]()
    u = torch.tensor([0.1, 0.5, 0.9], dtype=torch.float64)
    try:
        x = distribution.icdf(u)
    except NotImplementedError:
        return
    assert distribution.cdf(x).tolist() == pytest.approx(u.tolist(), abs=1e-5)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_entropies_are_minus_the_mean_log_density(name):
    distribution = CONTINUOUS[name]()
    try:
        entropy = distribution.entropy().item()
    except NotImplementedError:
        return
    estimate = -distribution.log_prob(distribution.sample((40_000,))).mean().item()
    assert estimate == pytest.approx(entropy, abs=0.03)


@pytest.mark.parametrize("a", [0.3, 1.0, 4.0, 60.0])
def test_gradients_of_gamma_samples_move_the_distribution(a):
    """d/da E[z] = 1 and d/da E[log z] = trigamma(a)."""
    concentration = torch.full((200_000,), a, dtype=torch.float64, requires_grad=True)
    z = d.Gamma(concentration, 1.0).rsample()
    (slope,) = torch.autograd.grad(z.sum(), concentration)
    assert slope.mean().item() == pytest.approx(1, abs=0.02)
    log_slope = (slope / z.detach()).mean().item()
    trigamma = torch.polygamma(1, torch.tensor(a, dtype=torch.float64)).item()
    assert log_slope == pytest.approx(trigamma, rel=0.02)


@pytest.mark.parametrize("a", [0.01, 0.3])
def test_small_concentrations_stay_finite(a):
    x = d.Dirichlet(torch.full((3,), a)).rsample((1000,))
    assert torch.isfinite(x).all()
    assert x.sum(-1).tolist() == pytest.approx([1.0] * 1000, abs=1e-5)
    assert torch.isfinite(d.Gamma(a, 1.0).log_prob(d.Gamma(a, 1.0).sample((1000,)))).all()


def test_dirichlet_gradients():
    """d/da_i E[x_i] = (A - a_i) / A^2."""
    a = torch.tensor([0.5, 1.5, 2.0], dtype=torch.float64)
    wide = a.expand(100_000, 3).clone().requires_grad_()
    x = d.Dirichlet(wide).rsample()
    (slope,) = torch.autograd.grad(x[:, 0].sum(), wide)
    assert slope[:, 0].mean().item() == pytest.approx(3.5 / 16, rel=0.05)
    assert slope[:, 1].mean().item() == pytest.approx(-0.5 / 16, rel=0.1)


def test_transforms_with_a_cache_invert_exactly():
    transform = d.TanhTransform(cache_size=1)
    x = torch.tensor([30.0])
    assert transform.inv(transform(x)) is x
    assert math.isinf(d.TanhTransform().inv(torch.tanh(x)).item())


def test_inverses_and_composition():
    transform = d.ComposeTransform([d.ExpTransform(), d.AffineTransform(1.0, -2.0)])
    x = torch.tensor([0.3, -1.0])
    assert transform.inv(transform(x)).tolist() == pytest.approx(x.tolist(), rel=1e-5)
    assert transform.inv.inv is transform
    assert transform.sign == -1
    assert d.ExpTransform() == d.ExpTransform()
    assert d.AffineTransform(1.0, 2.0) == d.AffineTransform(1.0, 2.0)
    assert d.AffineTransform(1.0, 2.0) != d.AffineTransform(1.0, 3.0)


def test_distributions_can_be_pickled_and_copied():
    distribution = d.LogNormal(torch.tensor([0.0, 1.0]), 1.0)
    x = torch.tensor([0.5, 2.0])
    for copied in (pickle.loads(pickle.dumps(distribution)), copy.deepcopy(distribution)):
        assert copied.log_prob(x).tolist() == distribution.log_prob(x).tolist()


def test_checks_can_be_switched_off():
    assert d.Normal(0.0, -1.0, validate_args=False).scale.item() == -1
    d.Distribution.set_default_validate_args(False)
    try:
        assert d.Normal(0.0, -1.0).scale.item() == -1
    finally:
        d.Distribution.set_default_validate_args(True)
    with pytest.raises(ValueError, match="Expected parameter scale"):
        d.Normal(0.0, -1.0)


def test_a_divergence_can_be_added():
    class Odd(d.Normal):
        pass

    @d.register_kl(Odd, Odd)
    def _odd(p, q):
        return torch.tensor(42.0)

    assert d.kl_divergence(Odd(0.0, 1.0), Odd(0.0, 1.0)).item() == 42
    assert d.kl_divergence(Odd(0.0, 1.0), d.Normal(0.0, 1.0)).item() == 0
