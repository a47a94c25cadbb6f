"""A primitive's signature as one call of a kernel: what eager plans and compiled programs share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from flambeau.core.spec import Spec
from flambeau.eager.memory import empty_array
from flambeau.eager.native.address import address
from flambeau.tensor.tensor import make


@dataclass(frozen=True, slots=True)
class NativeCall:
    """`entry` takes addresses, then numbers.

    arguments  whose addresses: operand k, or ~k for result k
    numbers    which operands are Python numbers, in the entry's order
    results    specs of the results, which are overwritten
    several    whether the primitive gives a tuple
    """

    entry: Callable[..., None]
    arguments: tuple[int, ...]
    results: tuple[Spec, ...]
    numbers: tuple[int, ...] = ()
    several: bool = False

    def plan(self) -> Callable:
        """operands -> new tensors."""
        if len(self.results) == 1 and not self.numbers and not self.several:
            if self.arguments == (0, ~0):
                return _unary(self.entry, self.results[0])
            if self.arguments == (0, 1, ~0):
                return _binary(self.entry, self.results[0])
        return self._general()

    def _general(self) -> Callable:
        entry, arguments, numbers = self.entry, self.arguments, self.numbers
        results, several = self.results, self.several

        def run(*operands):
            outs = [empty_array(s) for s in results]
            entry(*[address(operands[k]._array if k >= 0 else outs[~k]) for k in arguments],
                  *[operands[k] for k in numbers])
            if several:
                return tuple(make(a, s) for a, s in zip(outs, results))
            return make(outs[0], results[0])

        return run

    def inplace_plan(self, otherwise: Callable) -> Callable:
        """Write into the target, the only result. An operand that overlaps it otherwise than
        element by element sends the call to the plan `otherwise`."""
        entry, arguments, numbers = self.entry, self.arguments, self.numbers
        tensors = [k for k in arguments if k >= 0]

        def run(target, *operands):
            out = target._array
            for k in tensors:
                a = operands[k]._array
                if a is not out and np.may_share_memory(a, out) and not (
                        operands[k]._spec is target._spec and address(a) == address(out)):
                    return otherwise(target, *operands)
            entry(*[address(operands[k]._array if k >= 0 else out) for k in arguments],
                  *[operands[k] for k in numbers])

        return run


def _unary(entry: Callable, result: Spec) -> Callable:
    def run(x, *absent):
        out = empty_array(result)
        entry(address(x._array), address(out))
        return make(out, result)

    return run


def _binary(entry: Callable, result: Spec) -> Callable:
    def run(x, y, *absent):
        out = empty_array(result)
        entry(address(x._array), address(y._array), address(out))
        return make(out, result)

    return run
