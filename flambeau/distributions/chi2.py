"""Chi2."""

from __future__ import annotations

from typing import Any

from flambeau.distributions import constraints
from flambeau.distributions.gamma import Gamma
from flambeau.tensor import Tensor


class Chi2(Gamma):
    """Gamma(df / 2, 1 / 2): the sum of squares of `df` standard normals"""

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df: Any, validate_args: bool | None = None):
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Chi2:
        made = Chi2.__new__(Chi2) if _instance is None else _instance
        return super().expand(batch_shape, made)  # type: ignore[return-value]

    @property
    def df(self) -> Tensor:
        return self.concentration * 2
