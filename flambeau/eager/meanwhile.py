"""The executor that does not wait for compilers: NumPy, and kernels where NumPy is too slow.

Compiled functions compute with it while their programs are made. A signature for which NumPy has
taken longer than a kernel takes to make gets the kernel of eager mode, from its next call on.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from flambeau.eager import plans
from flambeau.eager.executor import LIMIT, EagerExecutor, specs_of
from flambeau.tensor.tensor import Tensor

SLOW_SECONDS = 0.05


class MeanwhileExecutor(EagerExecutor):
    """Its plans are its own, so that eager mode computes with the same kernel in every call."""

    def __init__(self) -> None:
        self.plans: dict[tuple, Callable] = {}
        self.slow: set[tuple] = set()

    def plan(self, primitive, key: tuple, args: tuple, params: dict) -> Callable:
        own = (primitive, key)
        if own in self.slow:
            return super().plan(primitive, key, args, params)
        found = self.plans.get(own)
        if found is not None:
            return found
        made = numpy_plan(primitive, specs_of(args), params)
        return made if params.get("generator") is not None else self._kept(own, made)

    def inplace_plan(
        self, primitive, key: tuple, target: Tensor, args: tuple, params: dict
    ) -> Callable:
        own = (primitive, key)
        if own in self.slow:
            return super().inplace_plan(primitive, key, target, args, params)
        found = self.plans.get(own)
        if found is not None:
            return found
        specs = specs_of(args)
        made = plans.numpy_inplace_plan(primitive, target._spec, specs, params, numpy_plan)
        return self._kept(own, made)

    def _kept(self, own: tuple, made: Callable) -> Callable:
        if len(self.plans) >= LIMIT:
            self.plans.clear()
            self.slow.clear()

        def timed(*args: Any) -> Any:
            start = time.perf_counter()
            result = made(*args)
            if time.perf_counter() - start > SLOW_SECONDS:
                self.slow.add(own)
            return result

        self.plans[own] = timed
        return timed


numpy_plan = partial(plans.plan, providers=())
