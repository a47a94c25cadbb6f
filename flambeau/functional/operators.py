"""`torch.ops.aten`: the operators of PyTorch's core under the names its tools use.

An operator resolves to the public function or method of the same name; what exists only under
this namespace is defined here. Overloads (`.default`, `.Tensor`, ..) are the operator itself,
as our functions take all of an operator's signatures.
"""

from __future__ import annotations

from collections.abc import Callable

from flambeau.core import dtype as dtypes
from flambeau.core.nearest import MissingName
from flambeau.functional import native, segments  # noqa: F401  register their names
from flambeau.functional.convolution import per_dim
from flambeau.functional.vision import resized
from flambeau.ops import pooling
from flambeau.ops.dims import normal_dim
from flambeau.tensor.choosing import where
from flambeau.tensor.copies import slice_view
from flambeau.tensor.public import FUNCTIONS, LOADERS
from flambeau.tensor.tensor import Tensor


class Operator:
    """`torch.ops.aten.name`: callable, and every overload of it is the same function."""

    def __init__(self, name: str, function: Callable, overload: str = ""):
        self._name, self._function, self._overload = name, function, overload

    def __call__(self, *args, **kwargs):
        return self._function(*args, **kwargs)

    def __getattr__(self, overload: str) -> Operator:
        if overload.startswith("_"):
            raise AttributeError(overload)
        made = Operator(self._name, self._function, overload)
        setattr(self, overload, made)
        return made

    @property
    def __name__(self) -> str:
        return f"{self._name}.{self._overload}" if self._overload else self._name

    def name(self) -> str:
        return f"aten::{self.__name__}"

    def overloads(self) -> list[str]:
        return ["default"]

    def __repr__(self) -> str:
        return f"<operator aten.{self.__name__}>"


class Aten:
    """The namespace."""

    def __getattr__(self, name: str) -> Operator:
        if name.startswith("__"):
            raise AttributeError(name)
        found = function_named(name)
        if found is None:
            raise MissingName("flambeau.ops.aten", name)
        made = Operator(name, found)
        setattr(self, name, made)
        return made

    def __repr__(self) -> str:
        return "<module 'torch.ops.aten'>"


def function_named(name: str) -> Callable | None:
    """The function of this name, wherever PyTorch keeps it in Python."""
    if name in OWN:
        return OWN[name]
    for module in ("", "nn.functional", "special"):
        if name in FUNCTIONS.get(module, {}):
            return FUNCTIONS[module][name]
    for prefix in ("linalg", "fft"):
        if name.startswith(prefix + "_"):
            LOADERS[prefix]()
            return FUNCTIONS[prefix].get(name[len(prefix) + 1:])
    if name.startswith("special_"):
        return FUNCTIONS["special"].get(name[8:])
    return getattr(Tensor, name, None)


# What has no public function -----------------------------------------------------------------


def max_pool2d_with_indices_backward(grad_output, input, kernel_size, stride, padding, dilation,
                                     ceil_mode, indices):
    """The gradient of max_pool2d from the positions of its maxima."""
    kernel = per_dim("max_pool2d", "kernel_size", kernel_size, 2)
    step = kernel if not stride and stride != 0 else per_dim("max_pool2d", "stride", stride, 2)
    g = pooling.max_pool_backward(
        grad_output, indices, sizes=tuple(input.shape[-2:]), kernel=kernel, stride=step,
        padding=per_dim("max_pool2d", "padding", padding, 2),
        dilation=per_dim("max_pool2d", "dilation", dilation, 2))
    never = input.new_zeros((), dtype=dtypes.bool)
    return where(never, input, g)  # the input's gradient is zero, not missing


def upsample_bilinear2d_aa(input, output_size=None, align_corners=False, scales_h=None,
                           scales_w=None, *, scale_factors=None):
    """Bilinear resizing with a filter as wide as the scale when shrinking."""
    scales = (scales_h, scales_w) if scale_factors is None else tuple(scale_factors)
    if output_size is None:
        output_size = [int(n * s) for n, s in zip(input.shape[-2:], scales)]
    for d, (n, scale) in enumerate(zip(output_size, scales)):
        input = resized(input, input.ndim - 2 + d, int(n), scale, "bilinear", align_corners, True)
    return input


def select_int(input, dim, index):
    """input[.., index, ..]."""
    return input.select(normal_dim("select", dim, input.ndim), index)


OWN: dict[str, Callable] = {
    "slice": slice_view,
    "select": select_int,
    "max_pool2d_with_indices_backward": max_pool2d_with_indices_backward,
    "_upsample_bilinear2d_aa": upsample_bilinear2d_aa,
    "_unsafe_view": lambda input, size: input.reshape(tuple(size)),
    "_to_copy": lambda input, **how: input.to(copy=True, **{
        k: v for k, v in how.items() if k in ("dtype", "device", "memory_format")}),
    "_reshape_alias": lambda input, size, stride: input.reshape(tuple(size)),
    "alias": lambda input: input.view(tuple(input.shape)),
    "lift_fresh": lambda input: input,
    "_unsafe_index": lambda input, indices: input[tuple(
        slice(None) if i is None else i for i in indices)],
    "index": lambda input, indices: input[tuple(
        slice(None) if i is None else i for i in indices)],
    "_unsafe_index_put": lambda input, indices, values, accumulate=False: input.index_put(
        tuple(indices), values, accumulate),
    "copy_": lambda input, source, non_blocking=False: input.copy_(source),
    "_local_scalar_dense": lambda input: input.item(),
    "sym_size": lambda input, dim=None: input.size(dim),
}

aten = Aten()
