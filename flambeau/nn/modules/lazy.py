"""Modules that learn the shape of their parameters from the first input."""

from __future__ import annotations

from typing import Any

from flambeau.core.errors import OpError, complaint
from flambeau.nn.modules.module import Module
from flambeau.nn.parameter import is_lazy

__all__ = ["LazyModuleMixin"]


class LazyModuleMixin(Module):
    """Mix in before a Module; the first call runs initialize_parameters(*args) and then the
    module turns into an object of class `cls_to_become`.
    """

    cls_to_become: type | None = None

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Materialize the uninitialized parameters for these inputs; subclasses define it."""
        raise OpError(
            complaint(
                type(self).__name__, "a lazy module must define initialize_parameters(*inputs)"
            )
        )

    def has_uninitialized_params(self) -> bool:
        """Whether any parameter or buffer of this module lacks a shape."""
        own = (*self._parameters.values(), *self._buffers.values())
        return any(is_lazy(tensor) for tensor in own)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.initialize_parameters(*args, **kwargs)
        if self.has_uninitialized_params():
            raise OpError(
                complaint(
                    type(self).__name__,
                    "initialize_parameters must give every parameter a shape",
                    {"left": [n for n, p in self._parameters.items() if is_lazy(p)]},
                )
            )
        if self.cls_to_become is None:
            return super().__call__(*args, **kwargs)
        self.__class__ = self.cls_to_become
        return self(*args, **kwargs)
