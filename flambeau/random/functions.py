"""PyTorch's random functions and in-place methods."""

from __future__ import annotations

from flambeau.core import dtype as dtypes
from flambeau.core.device import of as device_of
from flambeau.core.errors import ArgumentError, OpError, UnsupportedError, complaint
from flambeau.core.spec import dense_strides
from flambeau.ops.dims import normal_shape
from flambeau.random import primitives
from flambeau.tensor.conversion import strides_for
from flambeau.tensor.layout import preserve_format
from flambeau.tensor.public import public
from flambeau.tensor.tensor import Tensor


def fresh(law, shape, dtype, device, requires_grad: bool, strides=None, **params) -> Tensor:
    """A new tensor drawn from a law."""
    t = law(shape=shape, dtype=dtype or dtypes.default_dtype(), device=device_of(device),
            strides=strides, **params)
    return t.requires_grad_() if requires_grad else t


def floats_only(op: str, kind) -> None:
    if kind is not None and kind.category < dtypes.FLOAT:
        raise UnsupportedError(complaint(op, "the dtype must be floating point", dict(dtype=kind),
                                         "Use randint for integers."))


def factory(name: str, law, doc: str, **params) -> None:
    """`name(*size)` and `name_like(input)`."""

    def draw(*size, generator=None, dtype=None, layout=None, device=None, requires_grad=False,
             pin_memory=False, **size_keyword):
        size = size or (size_keyword["size"],)
        floats_only(name, dtype)
        return fresh(law, normal_shape(name, size), dtype, device, requires_grad,
                     generator=generator, **params)

    def like(input, *, dtype=None, layout=None, device=None, requires_grad=False,
             pin_memory=False, memory_format=preserve_format, generator=None):
        floats_only(name, dtype or input.dtype)
        return fresh(law, tuple(input.shape), dtype or input.dtype, device or input.device,
                     requires_grad, like_strides(input, memory_format), generator=generator,
                     **params)

    draw.__doc__ = like.__doc__ = doc
    public(draw, name=name, method=False)
    public(like, name=f"{name}_like", method=False, out=False)


def like_strides(x: Tensor, memory_format):
    if x._spec.is_contiguous and memory_format is preserve_format:
        return None
    found = strides_for(x, memory_format)
    return dense_strides(x.shape, x._spec.strides) if found is None else found


factory("rand", primitives.uniform, "Uniform numbers in [0, 1).", low=0.0, high=1.0)
factory("randn", primitives.normal, "Normal numbers of mean 0 and variance 1.", mean=0.0, std=1.0)


@public(method=False)
def randint(low=0, high=None, size=None, *, generator=None, dtype=None, layout=None, device=None,
            requires_grad=False, pin_memory=False):
    """Integers in [low, high); `randint(high, size)` starts at 0."""
    if size is None and not hasattr(high, "__index__"):
        low, high, size = 0, low, high
    if high is None:
        low, high = 0, low
    if not low < high:
        raise OpError(complaint("random_", "expects 'from' to be less than 'to'",
                                {"from": low, "to": high}))
    return fresh(primitives.integers, normal_shape("randint", (size,)), dtype or dtypes.int64,
                 device, requires_grad, low=int(low), high=int(high), generator=generator)


@public(method=False, out=False)
def randint_like(input, low, high=None, *, dtype=None, layout=None, device=None,
                 requires_grad=False, pin_memory=False, memory_format=preserve_format,
                 generator=None):
    """Integers in [low, high) in the shape and dtype of `input`."""
    low, high = (0, low) if high is None else (low, high)
    return fresh(primitives.integers, tuple(input.shape), dtype or input.dtype,
                 device or input.device, requires_grad, like_strides(input, memory_format),
                 low=int(low), high=int(high), generator=generator)


@public(method=False)
def randperm(n, *, generator=None, dtype=dtypes.int64, layout=None, device=None,
             requires_grad=False, pin_memory=False):
    """A random permutation of 0 .. n - 1."""
    if n < 0:
        raise OpError(complaint("randperm", "n must be non-negative", dict(n=n)))
    n = n if isinstance(n, int) else int(n)
    return primitives.randperm(n=n, dtype=dtype or dtypes.int64, device=device_of(device),
                               generator=generator)


@public
def bernoulli(input, p=None, *, generator=None):
    """1 with the probability given by each element (or by p), else 0."""
    floats_only("bernoulli", input.dtype)
    if p is not None:
        return primitives.bernoulli(shape=tuple(input.shape), dtype=input.dtype, p=float(p),
                                    device=input.device, generator=generator)
    return primitives.bernoulli_each(input.detach(), generator=generator)


@public(exact_out=True)
def multinomial(input, num_samples, replacement=False, *, generator=None):
    """`num_samples` indices per row, drawn with the row's weights."""
    if input.dtype.category != dtypes.FLOAT:
        raise OpError(complaint("multinomial", "expects a float tensor", dict(dtype=input.dtype)))
    if input.ndim not in (1, 2):
        raise OpError(complaint("multinomial", "prob_dist must be 1 or 2 dim",
                                dict(shape=list(input.shape))))
    if num_samples <= 0 or not replacement and num_samples > input.shape[-1]:
        raise OpError(complaint(
            "multinomial", "num_samples must be positive and, without replacement, at most the "
            "number of categories", dict(num_samples=num_samples, categories=input.shape[-1])))
    return primitives.multinomial(input.detach(), count=int(num_samples),
                                  replacement=bool(replacement), generator=generator)


@public(method=False)
def normal(mean, std=1.0, size=None, *, generator=None, dtype=None, layout=None, device=None,
           requires_grad=False, pin_memory=False):
    """Normal numbers; mean and std may be tensors."""
    if size is not None:
        return fresh(primitives.normal, normal_shape("normal", (size,)), dtype, device,
                     requires_grad, mean=float(mean), std=float(std), generator=generator)
    if isinstance(mean, Tensor) and not isinstance(std, Tensor):
        return fresh(primitives.normal, tuple(mean.shape), mean.dtype, mean.device, False,
                     mean=0.0, std=float(std), generator=generator) + mean.detach()
    mean = mean.detach() if isinstance(mean, Tensor) else mean
    return primitives.normal_around(mean, std.detach(), generator=generator)


@public(method=False, out=False)
def poisson(input, generator=None):
    """Poisson numbers with the rates given by each element."""
    return primitives.poisson(input.detach(), generator=generator)


@public(method=False, out=False)
def binomial(count, prob, generator=None):
    """Binomial numbers."""
    return primitives.binomial(count, prob, generator=generator)


@public(method=False, out=False)
def _standard_gamma(input, generator=None):
    """Gamma numbers of the given shapes and scale 1."""
    return primitives.standard_gamma(input.detach(), generator=generator)


@public(method=False, out=False)
def _sample_dirichlet(input, generator=None):
    """Dirichlet vectors along the last dimension."""
    return primitives.dirichlet(input.detach(), generator=generator)


# In place ------------------------------------------------------------------------------------


def fill(op: str, self: Tensor, law, generator, **params) -> Tensor:
    """self <- numbers of a law; history is cut."""
    return law.inplace(self, shape=tuple(self.shape), dtype=self.dtype, generator=generator,
                       **params)


def inplace_law(name: str, law, names: dict, doc: str, floats: bool = True) -> None:
    """`Tensor.name(**PyTorch's parameters)`; `names` maps them to (law's name, default)."""

    def method(self, *args, generator=None, **kwargs):
        if floats:
            floats_only(name, self.dtype)
        given = dict(zip(names, args)) | kwargs
        unknown = set(given) - set(names)
        if unknown or len(args) > len(names):
            raise ArgumentError(complaint(name, f"takes {', '.join(names)} and generator",
                                          dict(given=sorted(given))))
        params = {inner: type(default)(given.get(outer, default))
                  for outer, (inner, default) in names.items()}
        return fill(name, self, law, generator, **params)

    method.__doc__ = doc
    public(method, name=name, function=False, out=False)


inplace_law("uniform_", primitives.uniform, {"from": ("low", 0.0), "to": ("high", 1.0)},
            "self <- uniform numbers in [from, to).")
inplace_law("normal_", primitives.normal, dict(mean=("mean", 0.0), std=("std", 1.0)),
            "self <- normal numbers.")
inplace_law("log_normal_", primitives.log_normal, dict(mean=("mean", 1.0), std=("std", 2.0)),
            "self <- exp of normal numbers.")
inplace_law("exponential_", primitives.exponential, dict(lambd=("rate", 1.0)),
            "self <- exponential numbers.")
inplace_law("geometric_", primitives.geometric, dict(p=("p", 0.5)),
            "self <- number of trials up to the first success.", floats=False)
inplace_law("cauchy_", primitives.cauchy, dict(median=("median", 0.0), sigma=("sigma", 1.0)),
            "self <- Cauchy numbers.")


@public(function=False, out=False)
def bernoulli_(self, p=0.5, *, generator=None):
    """self <- 1 with probability p, else 0."""
    if isinstance(p, Tensor):
        drawn = primitives.bernoulli_each(p.detach().expand(tuple(self.shape)).contiguous(),
                                          generator=generator)
        return self.copy_(drawn)
    return fill("bernoulli_", self, primitives.bernoulli, generator, p=float(p))


@public(function=False, out=False)
def random_(self, *bounds, generator=None, **named):
    """self <- integers in [from, to), or over all that the dtype can count."""
    bounds = bounds or tuple(named[k] for k in ("from", "to") if k in named)
    low, high = (None, None) if not bounds else (0, bounds[0]) if len(bounds) == 1 else bounds
    return fill("random_", self, primitives.integers, generator, low=low, high=high)
