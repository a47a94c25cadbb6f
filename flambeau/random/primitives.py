"""The laws as primitives. Their results come in the memory order of the output.

`generator` is a parameter; None means the default generator, looked up when the op runs.
Primitives that take tensors (probabilities, rates) draw in the order of the output, which is
row-major.
"""

from __future__ import annotations

import numpy as np

from flambeau.core import dtype as dtypes
from flambeau.core.device import CPU
from flambeau.core.spec import Spec, memory_order, spec
from flambeau.ops.elementwise import pointwise_specs
from flambeau.ops.registry import Primitive, primitive
from flambeau.random.generator import default_generator
from flambeau.runtime import draws


def engine_of(generator) -> draws.Engine:
    return (default_generator if generator is None else generator).engine


def law(name: str, draw, **defaults) -> Primitive:
    """A primitive from draw(engine, shape, numpy dtype, **law's parameters)."""

    def meta(*, shape, dtype, device=CPU, strides=None, generator=None, **params) -> Spec:
        return spec(dtype, shape, strides, device)

    def ref(*, shape, dtype, device=CPU, strides=None, generator=None, **params):
        if strides is None:
            return draw(engine_of(generator), shape, dtype.numpy, **params)
        order = memory_order(shape, strides)
        drawn = draw(engine_of(generator), tuple(shape[d] for d in order), dtype.numpy, **params)
        return drawn.transpose(sorted(range(len(order)), key=order.__getitem__))

    def write(target, *, shape, dtype, device=CPU, strides=None, generator=None, **params):
        order = memory_order(target.shape, target.strides)
        inner = target.transpose(order)
        if name == "normal":
            params["contiguous"] = target.flags.c_contiguous
        inner[...] = draw(engine_of(generator), inner.shape, dtype.numpy, **params)

    def samples(rng):
        for shape in [(), (3,), (2, 0)]:
            yield (), dict(shape=shape, dtype=dtypes.float32, **defaults)

    return primitive(name, meta=meta, ref=ref, write=write, samples=samples, kind="random",
                     exact=True, operands=((), False))


uniform = law("uniform", draws.uniform, low=0.0, high=1.0)
normal = law("normal", draws.normal, mean=0.0, std=1.0)
log_normal = law("log_normal", draws.log_normal, mean=0.0, std=1.0)
exponential = law("exponential", draws.exponential, rate=1.0)
geometric = law("geometric", draws.geometric, p=0.5)
cauchy = law("cauchy", draws.cauchy, median=0.0, sigma=1.0)
bernoulli = law("bernoulli", draws.bernoulli, p=0.5)
dropout_mask = law("dropout_mask", draws.dropout_mask, p=0.5)
integers = law("integers", draws.integers, low=0, high=10)


# Laws with a tensor of parameters ------------------------------------------------------------


def each(name: str, draw, high: float = 1.0) -> Primitive:
    """A primitive from draw(engine, parameters) -> values of the same shape and dtype."""

    def meta(p: Spec, *, generator=None) -> Spec:
        return p.like(shape=tuple(p.shape))

    def ref(p, *, generator=None):
        return draw(engine_of(generator), np.ascontiguousarray(p))

    def samples(rng):
        for shape in [(3,), (2, 2), (0,)]:
            yield (rng.uniform(0.1, high, shape),), {}

    return primitive(name, meta=meta, ref=ref, samples=samples, kind="random", exact=True)


def _bernoulli_each(engine, p):
    return draws.bernoulli(engine, p.shape, p.dtype, p)


bernoulli_each = each("bernoulli_each", _bernoulli_each)
poisson = each("poisson", lambda engine, p: draws.poisson(engine, p).astype(p.dtype), 5.0)
standard_gamma = each("standard_gamma",
                      lambda engine, p: draws.standard_gamma(engine, p).astype(p.dtype), 3.0)
dirichlet = each("dirichlet", lambda engine, p: draws.dirichlet(engine, p).astype(p.dtype), 3.0)


def binomial_meta(count: Spec, p: Spec, *, generator=None) -> Spec:
    return p.like(shape=tuple(p.shape))


def binomial_ref(count, p, *, generator=None):
    return draws.binomial(engine_of(generator), count, p).astype(p.dtype)


def binomial_samples(rng):
    yield (rng.integers(1, 9, (4,)).astype(float), rng.uniform(0.1, 0.9, (4,))), {}


binomial = primitive("binomial", meta=binomial_meta, ref=binomial_ref, samples=binomial_samples,
                     kind="random", exact=True)


def normal_around_meta(mean: Spec, std: Spec, *, generator=None) -> Spec:
    kind, _ = pointwise_specs("normal", "float", (mean, std))
    return spec(kind.dtype, kind.shape, None, kind.device)


def normal_around_ref(mean, std, *, generator=None):
    return draws.normal_around(engine_of(generator), mean, std)


def normal_around_samples(rng):
    yield (rng.normal(size=(3,)), rng.uniform(0.1, 1, (3,))), {}


normal_around = primitive("normal_around", meta=normal_around_meta, ref=normal_around_ref,
                          samples=normal_around_samples, kind="random", exact=True)


# Permutations and choices --------------------------------------------------------------------


def randperm_meta(*, n, dtype, device=CPU, generator=None) -> Spec:
    return spec(dtype, (n,), None, device)


def randperm_ref(*, n, dtype, device=CPU, generator=None):
    return draws.permutation(engine_of(generator), n).astype(dtype.numpy)


def randperm_samples(rng):
    for n in (0, 1, 5):
        yield (), dict(n=n, dtype=dtypes.int64)


randperm = primitive("randperm", meta=randperm_meta, ref=randperm_ref, samples=randperm_samples,
                     kind="random", exact=True, operands=((), False))


def multinomial_meta(weights: Spec, *, count, replacement, generator=None) -> Spec:
    return spec(dtypes.int64, (*weights.shape[:-1], count), None, weights.device)


def multinomial_ref(weights, *, count, replacement, generator=None):
    return draws.multinomial(engine_of(generator), weights, count, replacement)


def multinomial_samples(rng):
    for shape in [(4,), (2, 4)]:
        for replacement in (False, True):
            yield (rng.uniform(0.1, 1, shape),), dict(count=3, replacement=replacement)


multinomial = primitive("multinomial", meta=multinomial_meta, ref=multinomial_ref,
                        samples=multinomial_samples, kind="random", exact=True)


def rrelu_meta(x: Spec, *, low, high, generator=None) -> Spec:
    return x.like(dtype=x.dtype.wide)


def rrelu_ref(x, *, low, high, generator=None):
    return draws.rrelu_slopes(engine_of(generator), x, low, high)


def rrelu_samples(rng):
    yield (rng.normal(size=(5,)),), dict(low=0.1, high=0.3)


rrelu_slopes = primitive("rrelu_slopes", meta=rrelu_meta, ref=rrelu_ref, samples=rrelu_samples,
                         kind="random", exact=True)
