"""What autograd adds to Tensor: gradients, history, detaching."""

from __future__ import annotations

from flambeau.autograd.gradients import backward
from flambeau.autograd.hooks import (
    register_post_accumulate_grad_hook,
    register_tensor_hook,
    retain_grad,
)
from flambeau.autograd.views import refreshed
from flambeau.core.dtype import FLOAT
from flambeau.core.errors import ArgumentError, AutogradError, complaint
from flambeau.tensor.public import public
from flambeau.tensor.tensor import Tensor, alias


def _requires_grad(self: Tensor) -> bool:
    if self._base is not None:
        refreshed(self)
    return self._requires_grad


def _set_requires_grad(self: Tensor, value: bool) -> None:
    requires_grad_(self, value)


def requires_grad_(self: Tensor, requires_grad: bool = True) -> Tensor:
    """Record operations on this leaf from now on."""
    if self._node is not None and not requires_grad:
        raise AutogradError(complaint(
            "requires_grad_", "you can only change requires_grad flags of leaf variables", None,
            "Use .detach() to get a tensor without history."))
    if requires_grad and self._spec.dtype.category < FLOAT:
        raise AutogradError(complaint(
            "requires_grad_", "only Tensors of floating point and complex dtype can require "
            "gradients", dict(dtype=self.dtype)))
    self._requires_grad = bool(requires_grad)
    return self


def _grad(self: Tensor):
    return self._grad


def _set_grad(self: Tensor, value) -> None:
    if value is not None:
        if not isinstance(value, Tensor):
            raise ArgumentError(complaint("grad", "grad must be a Tensor or None",
                                          dict(grad=type(value).__name__)))
        if value is self:
            raise AutogradError(complaint("grad", "a tensor can't be its own grad"))
        if value.shape != self.shape:
            raise AutogradError(complaint("grad", "grad must have the tensor's shape", dict(
                tensor=list(self.shape), grad=list(value.shape))))
        if value.dtype is not self.dtype:
            raise AutogradError(complaint("grad", "grad must have the tensor's dtype", dict(
                tensor=self.dtype, grad=value.dtype)))
    self._grad = value


def _grad_fn(self: Tensor):
    if self._base is not None:
        refreshed(self)
    return self._node


def _backward(self: Tensor, gradient=None, retain_graph=None, create_graph=False, inputs=None):
    """Accumulate d(self)/d(leaf) into the `.grad` of every leaf that requires it."""
    backward(self, gradient, retain_graph, create_graph, inputs=inputs)


@public(out=False)
def detach(input):
    """The same memory without history."""
    return alias(input)


@public(out=False)
def detach_(input):
    """Drop this tensor's history in place."""
    if input._base is not None:
        raise AutogradError(complaint("detach_", "a view cannot be detached in place", None,
                                      "Use detach() instead."))
    input._node, input._requires_grad = None, False
    return input


def _data(self: Tensor) -> Tensor:
    kind = Tensor if getattr(type(self), "_plain_results", False) else type(self)
    new = alias(self, kind)
    new._storage = new._storage.alias()
    return new


def _set_data(self: Tensor, value: Tensor) -> None:
    if not isinstance(value, Tensor):
        raise ArgumentError(complaint("data", "a Tensor is needed",
                                      dict(value=type(value).__name__)))
    self._array, self._spec, self._offset = value._array, value._spec, value._offset
    self._storage = value._storage


Tensor.requires_grad = property(_requires_grad, _set_requires_grad)
Tensor.requires_grad_ = requires_grad_
Tensor.grad = property(_grad, _set_grad, lambda self: setattr(self, "_grad", None))
Tensor.grad_fn = property(_grad_fn)
Tensor.is_leaf = property(lambda self: _grad_fn(self) is None)
Tensor.output_nr = property(lambda self: self._output_nr)
Tensor.retains_grad = property(
    lambda self: self._extra is not None and self._extra.retains is not None)
Tensor.data = property(_data, _set_data)
Tensor.backward = _backward
Tensor.register_hook = register_tensor_hook
Tensor.register_post_accumulate_grad_hook = register_post_accumulate_grad_hook
Tensor.retain_grad = retain_grad
