"""Views in place: `squeeze_`, `transpose_` and their like change what a tensor shows."""

from __future__ import annotations

from collections.abc import Callable

from flambeau.core.context import state
from flambeau.core.errors import AutogradError, complaint
from flambeau.tensor import shaping
from flambeau.tensor.public import FUNCTIONS, public
from flambeau.tensor.tensor import Tensor, adopt


def become_view(name: str, self: Tensor, viewed: Tensor) -> Tensor:
    """`self` shows what `viewed`, a view of it, shows, with its history."""
    if state.grad_enabled and self.requires_grad and self._node is None:
        raise AutogradError(complaint(
            name, "a leaf Variable that requires grad is being used in an in-place operation",
            dict(shape=list(self.shape)), f"Use {name.removesuffix('_')}() and keep its result."))
    adopt(self, viewed)
    self._node, self._output_nr = viewed._node, viewed._output_nr
    if self._base is not None:
        self._node_version = viewed._node_version
    return self


def in_place(view: Callable, *names: str) -> None:
    """`Tensor.<name>_` for the view function of that name."""

    def method(self, *args, **kwargs):
        return become_view(names[0], self, view(self, *args, **kwargs))

    method.__doc__ = f"`{view.__name__}`, in place."
    for name in names:
        public(method, name=name, function=False, out=False)


in_place(shaping.squeeze, "squeeze_")
in_place(shaping.unsqueeze, "unsqueeze_")
in_place(shaping.transpose, "transpose_", "swapaxes_", "swapdims_")
in_place(FUNCTIONS[""]["t"], "t_")
in_place(FUNCTIONS[""]["as_strided"], "as_strided_")
