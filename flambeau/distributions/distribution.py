"""Distribution: the base class, and exponential families.

A sample has the shape `sample_shape + batch_shape + event_shape`: independent draws, then a batch
of distributions of different parameters, then one event.
"""

from __future__ import annotations

from typing import Any

from flambeau.autograd.gradients import grad
from flambeau.autograd.modes import no_grad
from flambeau.core.errors import UnsupportedError, ValueRangeError, complaint
from flambeau.core.spec import Size
from flambeau.distributions import constraints
from flambeau.distributions.parameters import lazy_property, shape_of
from flambeau.tensor import Tensor, exp, sqrt
from flambeau.tensor.ensuring import ensure, has_values


class Distribution:
    """A batch of probability distributions.

    `arg_constraints` says which values each parameter may have, `support` which values a sample.
    Both are checked unless `validate_args` is false. `has_rsample`: `rsample` gives samples through
    which gradients reach the parameters.
    """

    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__
    arg_constraints: dict[str, Any] = {}
    support: Any = None

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Whether new distributions check their parameters and values."""
        if value not in (True, False):
            raise ValueRangeError(complaint("set_default_validate_args", "value must be a bool",
                                            dict(value=value)))
        Distribution._validate_args = value

    def __init__(self, batch_shape: Any = (), event_shape: Any = (),
                 validate_args: bool | None = None):
        self._batch_shape = Size(batch_shape)
        self._event_shape = Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()

    def _check_parameters(self) -> None:
        for name, constraint in self.arg_constraints.items():
            derived = name not in self.__dict__ and isinstance(
                getattr(type(self), name, None), lazy_property)
            if constraints.is_dependent(constraint) or derived:
                continue
            value = getattr(self, name)
            holds = constraint.check(value)
            if not has_values(holds):
                ensure(holds, ValueRangeError, type(self).__name__,
                       f"parameter {name} must satisfy its constraint")
            elif not holds.all():
                raise ValueRangeError(complaint(
                    type(self).__name__,
                    f"Expected parameter {name} ({type(value).__name__} of shape "
                    f"{tuple(value.shape)}) to satisfy the constraint {constraint!r}, but found "
                    f"invalid values:\n{value}"))

    def expand(self, batch_shape: Any, _instance: Any = None) -> Distribution:
        """The same distributions, broadcast to a larger batch. Their memory is shared."""
        raise self._lacks("expand")

    def _expanded(self, instance: Any, batch_shape: Any, **parameters: Any) -> Any:
        """An instance with these parameters, made without checking them again."""
        made: Any = object.__new__(type(self)) if instance is None else instance
        made.__dict__.update(parameters)
        Distribution.__init__(made, Size(batch_shape), self._event_shape, validate_args=False)
        made._validate_args = self._validate_args
        return made

    def _expand_parameters(self, batch_shape: Any, instance: Any, *names: str) -> Any:
        """`expand` where every parameter has the batch's shape: those that were given."""
        shape = Size(batch_shape)
        given = {n: self.__dict__[n].expand(shape) for n in names if n in self.__dict__}
        return self._expanded(instance, shape, **given)

    @property
    def batch_shape(self) -> Size:
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        return self._event_shape

    @property
    def mean(self) -> Tensor:
        raise self._lacks("mean")

    @property
    def mode(self) -> Tensor:
        raise self._lacks("mode")

    @property
    def variance(self) -> Tensor:
        raise self._lacks("variance")

    @property
    def stddev(self) -> Tensor:
        return sqrt(self.variance)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draws, without gradients."""
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draws that are functions of the parameters and of parameter-free noise."""
        raise self._lacks("rsample")

    def sample_n(self, n: int) -> Tensor:
        return self.sample((n,))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability density or mass at `value`."""
        raise self._lacks("log_prob")

    def cdf(self, value: Tensor) -> Tensor:
        raise self._lacks("cdf")

    def icdf(self, value: Tensor) -> Tensor:
        """The inverse of `cdf`."""
        raise self._lacks("icdf")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values of a discrete distribution, along a new first dimension."""
        raise self._lacks("enumerate_support")

    def entropy(self) -> Tensor:
        """In nats."""
        raise self._lacks("entropy")

    def perplexity(self) -> Tensor:
        return exp(self.entropy())

    def _extended_shape(self, sample_shape: Any = ()) -> Size:
        return Size(shape_of(sample_shape) + self._batch_shape + self._event_shape)

    def _validate_sample(self, value: Any) -> None:
        """Raise ValueError for what cannot be a sample of this distribution."""
        name = type(self).__name__
        if not isinstance(value, Tensor):
            raise ValueRangeError(complaint(name, "The value argument to log_prob must be a Tensor",
                                            dict(got=type(value).__name__)))
        self._check_shape(name, tuple(value.shape))
        support = self._support_to_check()
        if support is None:
            return
        holds = support.check(value)
        if not has_values(holds):
            ensure(holds, ValueRangeError, name, "a value must be within the support")
        elif not holds.all():
            raise ValueRangeError(complaint(
                name, f"Expected value argument ({type(value).__name__} of shape "
                f"{tuple(value.shape)}) to be within the support ({support!r}) of the "
                f"distribution, but found invalid values:\n{value}"))

    def _check_shape(self, name: str, shape: tuple) -> None:
        expected = tuple(self._batch_shape + self._event_shape)
        event = tuple(self._event_shape)
        if len(shape) < len(event) or shape[len(shape) - len(event):] != event:
            raise ValueRangeError(complaint(name, "the right-most sizes of the value must match "
                                            "the event shape",
                                            dict(shape=shape, event_shape=event)))
        for i, j in zip(reversed(shape), reversed(expected), strict=False):
            if 1 not in (i, j) and i != j:
                raise ValueRangeError(complaint(name, "the value must be broadcastable with the "
                                                "batch and event shape",
                                                dict(shape=shape, expected=expected)))

    def _support_to_check(self) -> Any:
        try:
            return self.support
        except NotImplementedError:
            return None

    def _lacks(self, what: str) -> UnsupportedError:
        return UnsupportedError(complaint(type(self).__name__, f"has no {what}"))

    def __repr__(self) -> str:
        names = [n for n in self.arg_constraints if n in self.__dict__]
        facts = [f"{n}: {self._shown(self.__dict__[n])}" for n in names]
        return f"{type(self).__name__}({', '.join(facts)})"

    @staticmethod
    def _shown(value: Any) -> Any:
        if isinstance(value, Tensor) and value.numel() != 1:
            return tuple(value.shape)
        return value.item() if isinstance(value, Tensor) and value.dim() == 0 else value


class ExponentialFamily(Distribution):
    """p(x; t) = exp(<T(x), n(t)> - F(n(t)) + k(x)), which gives the entropy and divergences.

    A subclass defines its natural parameters, F as `_log_normalizer`, and the mean of k.
    """

    @property
    def _mean_carrier_measure(self) -> Any:
        raise self._lacks("entropy in closed form")

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise self._lacks("natural parameters")

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        raise self._lacks("log normalizer")

    def entropy(self) -> Tensor:
        """F - <n, dF/dn> - E[k], by automatic differentiation."""
        params = [p.detach().requires_grad_() for p in self._natural_params]
        normalizer = self._log_normalizer(*params)
        gradients = grad(normalizer.sum(), params, create_graph=True)
        result = normalizer - self._mean_carrier_measure
        for parameter, gradient in zip(params, gradients, strict=True):
            part = parameter * gradient
            result = result - part.reshape((*self._batch_shape, -1)).sum(-1)
        return result
