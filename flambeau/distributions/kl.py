"""Kullback-Leibler divergences: KL(p | q) = E_p[log p - log q], in closed form, pair by pair."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from flambeau.autograd.gradients import grad
from flambeau.core.errors import ArgumentError, UnsupportedError, ValueRangeError, complaint
from flambeau.distributions.bernoulli import Bernoulli
from flambeau.distributions.beta import Beta
from flambeau.distributions.binomial import Binomial
from flambeau.distributions.categorical import Categorical
from flambeau.distributions.cauchy import Cauchy
from flambeau.distributions.continuous_bernoulli import ContinuousBernoulli
from flambeau.distributions.dirichlet import Dirichlet
from flambeau.distributions.distribution import Distribution, ExponentialFamily
from flambeau.distributions.exponential import Exponential
from flambeau.distributions.gamma import Gamma
from flambeau.distributions.geometric import Geometric
from flambeau.distributions.gumbel import EULER, Gumbel
from flambeau.distributions.half_normal import HalfNormal
from flambeau.distributions.independent import Independent
from flambeau.distributions.laplace import Laplace
from flambeau.distributions.lowrank_multivariate_normal import LowRankMultivariateNormal
from flambeau.distributions.multivariate_normal import MultivariateNormal, mahalanobis
from flambeau.distributions.normal import Normal
from flambeau.distributions.one_hot_categorical import OneHotCategorical
from flambeau.distributions.parameters import softplus, sum_rightmost
from flambeau.distributions.pareto import Pareto
from flambeau.distributions.poisson import Poisson
from flambeau.distributions.transformed_distribution import TransformedDistribution
from flambeau.distributions.uniform import Uniform
from flambeau.tensor import (
    Tensor,
    broadcast_shapes,
    digamma,
    exp,
    full,
    lgamma,
    linalg,
    log,
    log1p,
    where,
    xlogy,
)

_formulas: dict[tuple[type, type], Callable[[Any, Any], Tensor]] = {}


def register_kl(type_p: type, type_q: type) -> Callable:
    """Decorator: this function gives KL(p | q) for p of type_p and q of type_q, or subclasses."""
    if not (isinstance(type_p, type) and issubclass(type_p, Distribution)
            and isinstance(type_q, type) and issubclass(type_q, Distribution)):
        raise ArgumentError(complaint("register_kl", "expected two Distribution subclasses",
                                      dict(type_p=type_p, type_q=type_q)))

    def register(function: Callable) -> Callable:
        _formulas[type_p, type_q] = function
        _formula.cache_clear()
        return function

    return register


@functools.cache
def _formula(type_p: Any, type_q: Any) -> Callable[[Any, Any], Tensor] | None:
    """The formula for the nearest base classes: first of p, then of q."""
    for base_p in type_p.__mro__:
        for base_q in type_q.__mro__:
            if (base_p, base_q) in _formulas:
                return _formulas[base_p, base_q]
    return None


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """KL(p | q), a batch of numbers. NotImplementedError where no formula is registered."""
    formula = _formula(type(p), type(q))
    if formula is None:
        raise UnsupportedError(complaint("kl_divergence", "No KL(p || q) is implemented",
                                         dict(p=type(p).__name__, q=type(q).__name__),
                                         "Add a formula with register_kl."))
    return formula(p, q)


def _infinite(where_: Tensor, otherwise: Tensor) -> Tensor:
    return where(where_, float("inf"), otherwise)


@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_families(p: Any, q: Any) -> Tensor:
    """The Bregman divergence of the log normalizers: F(q) - F(p) - <n_q - n_p, dF/dn_p>."""
    if type(p) is not type(q):
        raise UnsupportedError(complaint(
            "kl_divergence", "KL between two different exponential families is not known",
            dict(p=type(p).__name__, q=type(q).__name__)))
    p_params = [n.detach().requires_grad_() for n in p._natural_params]
    normalizer = p._log_normalizer(*p_params)
    gradients = grad(normalizer.sum(), p_params, create_graph=True)
    result = q._log_normalizer(*q._natural_params) - normalizer
    for mine, other, gradient in zip(p_params, q._natural_params, gradients, strict=True):
        result = result - sum_rightmost((other - mine) * gradient, len(q.event_shape))
    return result


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Bernoulli, q: Bernoulli) -> Tensor:
    ones = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    ones = where(p.probs == 0, 0.0, _infinite(q.probs == 0, ones))
    zeros = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    zeros = where(p.probs == 1, 0.0, _infinite(q.probs == 1, zeros))
    return ones + zeros


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Bernoulli, q: Poisson) -> Tensor:
    return -p.entropy() - (p.probs * log(q.rate) - q.rate)


@register_kl(Beta, Beta)
def _beta(p: Beta, q: Beta) -> Tensor:
    total_p = p.concentration1 + p.concentration0
    total_q = q.concentration1 + q.concentration0
    constants = (lgamma(q.concentration1) + lgamma(q.concentration0) + lgamma(total_p)
                 - lgamma(p.concentration1) - lgamma(p.concentration0) - lgamma(total_q))
    return (constants + (p.concentration1 - q.concentration1) * digamma(p.concentration1)
            + (p.concentration0 - q.concentration0) * digamma(p.concentration0)
            + (total_q - total_p) * digamma(total_p))


@register_kl(Binomial, Binomial)
def _binomial(p: Binomial, q: Binomial) -> Tensor:
    if (p.total_count < q.total_count).any():
        raise UnsupportedError(complaint("kl_divergence", "KL between Binomials where "
                                         "q.total_count > p.total_count is not known"))
    value = p.total_count * (p.probs * (p.logits - q.logits) + log1p(-p.probs) - log1p(-q.probs))
    return _infinite(p.total_count > q.total_count, value)


@register_kl(Categorical, Categorical)
def _categorical(p: Categorical, q: Categorical) -> Tensor:
    terms = p.probs * (p.logits - q.logits)
    terms = _infinite((q.probs == 0).expand_as(terms), terms)
    return where((p.probs == 0).expand_as(terms), 0.0, terms).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p: OneHotCategorical, q: OneHotCategorical) -> Tensor:
    return _categorical(p._categorical, q._categorical)


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Cauchy, q: Cauchy) -> Tensor:
    apart = (p.scale + q.scale) ** 2 + (p.loc - q.loc) ** 2
    return log(apart) - log(4 * p.scale * q.scale)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p: ContinuousBernoulli, q: ContinuousBernoulli) -> Tensor:
    return (p.mean * (p.logits - q.logits) + p._log_constant() + log1p(-p.probs)
            - q._log_constant() - log1p(-q.probs))


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Dirichlet, q: Dirichlet) -> Tensor:
    a, b = p.concentration, q.concentration
    total = a.sum(-1)
    constants = lgamma(total) - lgamma(b.sum(-1)) - (lgamma(a) - lgamma(b)).sum(-1)
    return constants + ((a - b) * (digamma(a) - digamma(total).unsqueeze(-1))).sum(-1)


@register_kl(Exponential, Exponential)
def _exponential(p: Exponential, q: Exponential) -> Tensor:
    ratio = q.rate / p.rate
    return -log(ratio) + ratio - 1


@register_kl(Gamma, Gamma)
def _gamma(p: Gamma, q: Gamma) -> Tensor:
    a, b = p.concentration, q.concentration
    return (b * log(p.rate / q.rate) + lgamma(b) - lgamma(a) + (a - b) * digamma(a)
            + (q.rate - p.rate) * (a / p.rate))


@register_kl(Geometric, Geometric)
def _geometric(p: Geometric, q: Geometric) -> Tensor:
    return -p.entropy() - log1p(-q.probs) / p.probs - q.logits


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Gumbel, q: Gumbel) -> Tensor:
    ratio = p.scale / q.scale
    apart = (q.loc - p.loc) / q.scale
    return -log(ratio) - apart + ratio * EULER + exp(apart + lgamma(1 + ratio)) - (1 + EULER)


@register_kl(Normal, Normal)
def _normal(p: Normal, q: Normal) -> Tensor:
    ratio = (p.scale / q.scale) ** 2
    apart = ((p.loc - q.loc) / q.scale) ** 2
    return 0.5 * (ratio + apart - 1 - log(ratio))


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: HalfNormal, q: HalfNormal) -> Tensor:
    return _normal(p.base_dist, q.base_dist)  # type: ignore[arg-type]


@register_kl(Laplace, Laplace)
def _laplace(p: Laplace, q: Laplace) -> Tensor:
    ratio = p.scale / q.scale
    apart = (p.loc - q.loc).abs()
    return -log(ratio) + apart / q.scale + ratio * exp(-apart / p.scale) - 1


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate_normal(p: MultivariateNormal, q: MultivariateNormal) -> Tensor:
    _same_event(p, q)
    n = p.event_shape[0]
    factor = q._unbroadcasted_scale_tril
    quotient = linalg.solve_triangular(factor, p._unbroadcasted_scale_tril, upper=False)
    spread = (quotient**2).sum(-1).sum(-1) + mahalanobis(factor, q.loc - p.loc)
    return q._half_log_det() - p._half_log_det() + 0.5 * (spread - n)


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
@register_kl(MultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _low_rank(p: Any, q: Any) -> Tensor:
    _same_event(p, q)
    whole = [d if isinstance(d, MultivariateNormal) else MultivariateNormal(
        d.loc, d.covariance_matrix, validate_args=False) for d in (p, q)]
    return _multivariate_normal(*whole)


def _same_event(p: Distribution, q: Distribution) -> None:
    if p.event_shape != q.event_shape:
        raise ValueRangeError(complaint("kl_divergence", "the event shapes must be the same",
                                        dict(p=tuple(p.event_shape), q=tuple(q.event_shape))))


@register_kl(Pareto, Pareto)
def _pareto(p: Pareto, q: Pareto) -> Tensor:
    ratio = q.alpha / p.alpha
    value = q.alpha * log(p.scale / q.scale) - log(ratio) + ratio - 1
    return _infinite(p.scale < q.scale, value)


@register_kl(Poisson, Poisson)
def _poisson(p: Poisson, q: Poisson) -> Tensor:
    return p.rate * (log(p.rate) - log(q.rate)) - (p.rate - q.rate)


@register_kl(Uniform, Uniform)
def _uniform(p: Uniform, q: Uniform) -> Tensor:
    value = log((q.high - q.low) / (p.high - p.low))
    return _infinite((q.low > p.low) | (q.high < p.high), value)


@register_kl(Normal, Laplace)
def _normal_laplace(p: Normal, q: Laplace) -> Tensor:
    apart = p.loc - q.loc
    scaled = apart / p.scale
    distance = (math.sqrt(2 / math.pi) * p.scale * exp(-0.5 * scaled**2)
                + apart * (scaled * math.sqrt(0.5)).erf())
    entropy = log(p.scale) + 0.5 + 0.5 * math.log(2 * math.pi)
    return -entropy + log(2 * q.scale) + distance / q.scale


@register_kl(Beta, Uniform)
def _beta_uniform(p: Beta, q: Uniform) -> Tensor:
    return _infinite((q.low > 0) | (q.high < 1), -p.entropy() + log(q.high - q.low))


# Of log q, only moments of p are needed where q is Normal, Exponential or Gamma.


@register_kl(Beta, Normal)
@register_kl(ContinuousBernoulli, Normal)
@register_kl(Exponential, Normal)
@register_kl(Gamma, Normal)
@register_kl(Gumbel, Normal)
@register_kl(Laplace, Normal)
@register_kl(Pareto, Normal)
@register_kl(Uniform, Normal)
def _to_normal(p: Any, q: Normal) -> Tensor:
    second = p.variance + (p.mean - q.loc) ** 2
    value = -p.entropy() + log(math.sqrt(2 * math.pi) * q.scale) + 0.5 * second / q.scale**2
    return _infinite(p.alpha <= 2, value) if isinstance(p, Pareto) else value


@register_kl(Beta, Exponential)
@register_kl(ContinuousBernoulli, Exponential)
@register_kl(Gamma, Exponential)
@register_kl(Pareto, Exponential)
@register_kl(Uniform, Exponential)
def _to_exponential(p: Any, q: Exponential) -> Tensor:
    value = -p.entropy() - log(q.rate) + q.rate * p.mean
    return _infinite(p.low < 0, value) if isinstance(p, Uniform) else value


@register_kl(Beta, Gamma)
@register_kl(Exponential, Gamma)
@register_kl(Pareto, Gamma)
@register_kl(Uniform, Gamma)
def _to_gamma(p: Any, q: Gamma) -> Tensor:
    a, rate = q.concentration, q.rate
    cross = a * log(rate) + (a - 1) * _mean_log(p) - rate * p.mean - lgamma(a)
    value = -p.entropy() - cross
    return _infinite(p.low < 0, value) if isinstance(p, Uniform) else value


def _mean_log(p: Any) -> Tensor:
    """E_p[log x]"""
    if isinstance(p, Beta):
        return digamma(p.concentration1) - digamma(p.concentration1 + p.concentration0)
    if isinstance(p, Exponential):
        return -EULER - log(p.rate)
    if isinstance(p, Pareto):
        return log(p.scale) + p.alpha.reciprocal()
    return (xlogy(p.high, p.high) - xlogy(p.low, p.low)) / (p.high - p.low) - 1


def _disjoint(p: Any, q: Any) -> Tensor:
    """p gives weight to what q excludes."""
    shape = broadcast_shapes(tuple(p.batch_shape), tuple(q.batch_shape))
    return full(shape, float("inf"), dtype=p.mean.dtype, device=p.mean.device)


_BOUNDED = (Beta, ContinuousBernoulli, Uniform, Pareto)
_EXCLUDED = {
    (Normal, Laplace, Gumbel, Cauchy): (*_BOUNDED, Exponential, Gamma),
    (Exponential, Gamma): _BOUNDED,
    (Pareto,): (Beta, ContinuousBernoulli, Uniform),
    (Beta, ContinuousBernoulli): (Pareto,),
    (Poisson,): (Bernoulli, Binomial),
}
for _wide, _narrow in _EXCLUDED.items():
    for _p in _wide:
        for _q in _narrow:
            register_kl(_p, _q)(_disjoint)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: TransformedDistribution, q: TransformedDistribution) -> Tensor:
    """An invertible map that both share changes nothing."""
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise UnsupportedError(complaint("kl_divergence", "the transforms must be the same",
                                         dict(p=p.transforms, q=q.transforms)))
    extra = len(p.event_shape) - len(p.base_dist.event_shape)
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), extra)


@register_kl(Independent, Independent)
def _independent(p: Independent, q: Independent) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise UnsupportedError(complaint(
            "kl_divergence", "reinterpreted_batch_ndims must be the same",
            dict(p=p.reinterpreted_batch_ndims, q=q.reinterpreted_batch_ndims)))
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)
