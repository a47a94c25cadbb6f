"""New tensors: zeros, ones, full, empty, arange and their `_like` and `new_` forms."""

from __future__ import annotations

import math

from flambeau.core import dtype as dtypes
from flambeau.core.device import of as device_of
from flambeau.core.dtype import of_number
from flambeau.core.errors import OpError, complaint
from flambeau.core.spec import dense_strides
from flambeau.ops import creation
from flambeau.ops.dims import int_argument, normal_shape
from flambeau.ops.views import as_strided
from flambeau.tensor.conversion import strides_for
from flambeau.tensor.layout import contiguous_format, preserve_format
from flambeau.tensor.public import public
from flambeau.tensor.tensor import Tensor


def filled(shape, value, dtype, device, requires_grad: bool, strides=None) -> Tensor:
    """The one way that constant tensors come to be."""
    t = creation.full(
        shape=shape,
        value=value,
        dtype=dtype or dtypes.default_dtype(),
        device=device_of(device),
        strides=strides,
    )
    return t.requires_grad_() if requires_grad else t


def constant(name: str, value: float, doc: str) -> None:
    """`name(*size)`, `name_like(input)` and `Tensor.new_name(size)`."""

    def factory(
        *size,
        dtype=None,
        layout=None,
        device=None,
        requires_grad=False,
        pin_memory=False,
        memory_format=contiguous_format,
        **size_keyword,
    ):
        size = size or (size_keyword["size"],)
        return filled(normal_shape(name, size), value, dtype, device, requires_grad)

    def like(
        input,
        *,
        dtype=None,
        layout=None,
        device=None,
        requires_grad=False,
        pin_memory=False,
        memory_format=preserve_format,
    ):
        return filled_like(input, value, dtype, device, requires_grad, memory_format)

    def new(
        self,
        *size,
        dtype=None,
        layout=None,
        device=None,
        requires_grad=False,
        pin_memory=False,
        **size_keyword,
    ):
        size = size or (size_keyword["size"],)
        return filled(
            normal_shape(name, size),
            value,
            dtype or self.dtype,
            device or self.device,
            requires_grad,
        )

    factory.__doc__, like.__doc__, new.__doc__ = doc, doc, doc
    public(factory, name=name, method=False)
    public(like, name=f"{name}_like", method=False, out=False)
    public(new, name=f"new_{name}", function=False, out=False)


def filled_like(x: Tensor, value, dtype, device, requires_grad: bool, memory_format) -> Tensor:
    """A constant in the shape of `x`, in its memory order unless told otherwise."""
    strides = strides_for(x, memory_format)
    if strides is None:
        strides = dense_strides(x.shape, x._spec.strides)
    return filled(
        tuple(x.shape), value, dtype or x.dtype, device or x.device, requires_grad, strides
    )


constant("zeros", 0, "A tensor of zeros.")
constant("ones", 1, "A tensor of ones.")
constant("empty", 0, "A tensor whose values are not specified (here: zeros).")


@public(method=False)
def full(
    size, fill_value, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False
):
    """A tensor of one value; its dtype follows the value's."""
    value = fill_value.item() if isinstance(fill_value, Tensor) else fill_value
    size = (size,) if hasattr(size, "__index__") else size
    return filled(
        normal_shape("full", (size,)), value, dtype or of_number(value), device, requires_grad
    )


@public(method=False, out=False)
def full_like(
    input,
    fill_value,
    *,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
    pin_memory=False,
    memory_format=preserve_format,
):
    """A tensor of one value in the shape of `input`."""
    value = fill_value.item() if isinstance(fill_value, Tensor) else fill_value
    return filled_like(input, value, dtype, device, requires_grad, memory_format)


@public(method=False)
def arange(
    start=0,
    end=None,
    step=1,
    *,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
    pin_memory=False,
):
    """start, start + step, .. below end; int64 if all three are integers."""
    if end is None:
        start, end = 0, start
    start, end, step = (v.item() if isinstance(v, Tensor) else v for v in (start, end, step))
    if not all(isinstance(v, int) or math.isfinite(v) for v in (start, end)):
        raise OpError(
            complaint("arange", "start and end must be finite", dict(start=start, end=end))
        )
    if dtype is not None and dtype.category == dtypes.INTEGER:
        start, end, step = (v if isinstance(v, int) else int(v) for v in (start, end, step))
    if step == 0:
        raise OpError(complaint("arange", "step must be nonzero"))
    if (end - start) * step < 0:
        raise OpError(
            complaint(
                "arange",
                "upper bound and lower bound inconsistent with step sign",
                dict(start=start, end=end, step=step),
            )
        )
    whole = all(isinstance(v, int) for v in (start, end, step))
    if whole:
        span, stride = (end - start, step) if step > 0 else (start - end, -step)
        count = (span + (stride - 1)) // stride
    else:
        count = math.ceil((end - start) / step)
    t = creation.arange(
        start=start,
        step=step,
        count=count,
        device=device_of(device),
        dtype=dtype or (dtypes.int64 if whole else dtypes.default_dtype()),
    )
    return t.requires_grad_() if requires_grad else t


@public(method=False)
def eye(n, m=None, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """Ones on the diagonal of an n x m matrix."""
    m = n if m is None else m
    if n < 0 or m < 0:
        raise OpError(complaint("eye", "n and m must be greater or equal to 0", dict(n=n, m=m)))
    rows = arange(n, device=device).reshape((n, 1))
    t = (rows == arange(m, device=device)).to(dtype or dtypes.default_dtype())
    return t.requires_grad_() if requires_grad else t


@public(method=False)
def linspace(
    start,
    end,
    steps,
    *,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
    pin_memory=False,
):
    """`steps` equally spaced numbers from start to end, both included."""
    start, end = (v.item() if isinstance(v, Tensor) else v for v in (start, end))
    steps = int_argument("linspace", "steps", steps)
    if steps < 0:
        raise OpError(
            complaint("linspace", "number of steps must be non-negative", dict(steps=steps))
        )
    kind = dtype or dtypes.default_dtype()
    if isinstance(start, complex) or isinstance(end, complex):
        kind = dtype or kind.to_complex()
    steps = steps if isinstance(steps, int) else int(steps)
    t = creation.linspace(
        start=start, end=end, steps=steps, dtype=kind, device=device_of(device)
    )
    return t.requires_grad_() if requires_grad else t


@public(method=False)
def logspace(
    start,
    end,
    steps,
    base=10.0,
    *,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
    pin_memory=False,
):
    """base to the power of equally spaced exponents."""
    kind = dtype or dtypes.default_dtype()
    wide = kind if kind.category >= dtypes.FLOAT else dtypes.float64
    t = (float(base) ** linspace(start, end, steps, dtype=wide, device=device)).to(kind)
    return t.requires_grad_() if requires_grad else t


@public(method=False, out=False)
def empty_strided(
    size, stride, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False
):
    """A tensor of the given size and strides (here: zeros)."""
    reach = 1 + sum((n - 1) * s for n, s in zip(size, stride)) if 0 not in size else 0
    flat = filled((reach,), 0, dtype, device, False)
    t = as_strided(flat, size=tuple(size), stride=tuple(stride), offset=0).detach()
    return t.requires_grad_() if requires_grad else t
