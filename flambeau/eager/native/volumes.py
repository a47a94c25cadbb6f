"""Three-dimensional convolutions as two-dimensional ones over planes.

A plane of the output needs as many planes of the input as the kernel is deep. Those become channels
of one picture, so that y[n, :, z] is the convolution of picture (n, z). Pictures are made for a few
samples at a time, which bounds what they take.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from flambeau.core.spec import Spec, spec
from flambeau.eager.memory import empty_array
from flambeau.eager.native.address import address
from flambeau.eager.native.call import NativeCall
from flambeau.eager.native.convolutions import conv_call
from flambeau.eager.native.nests import buffer, call_of
from flambeau.loops.api import const, guarded, nest, reduce, widened
from flambeau.ops.registry import REGISTRY
from flambeau.tensor.tensor import make

MOST_BYTES = 1 << 25  # of the pictures made at a time


@dataclass(frozen=True, slots=True)
class Volumes:
    """One convolution of x (N, C, D, H, W) with w (K, C / groups, kd, kh, kw) to y, by specs."""

    x: Spec
    w: Spec
    y: Spec
    params: dict

    def group(self) -> int:
        """Samples at a time: a divisor of N. Narrow weight gradients are not summed by parts."""
        if self.x.dtype.is_narrow_float:
            return self.x.shape[0]
        n, depth, taps = self.x.shape[0], self.y.shape[2], self.w.shape[2]
        each = depth * taps * self.x.nbytes // (n * self.x.shape[2])
        most = max(1, min(n, MOST_BYTES // max(each, 1)))
        return next(k for k in range(most, 0, -1) if n % k == 0)

    def of_group(self, s: Spec) -> Spec:
        return s.like(shape=(self.group(), *s.shape[1:]))

    def pictures(self) -> tuple[Spec, Spec, Spec, dict]:
        """(x, w, y, params) of the convolution over planes."""
        count, taps = self.group() * self.y.shape[2], self.w.shape[2]
        k, c = self.w.shape[:2]
        x = self.x.like(shape=(count, self.x.shape[1] * taps, *self.x.shape[3:]))
        y = self.y.like(shape=(count, k, *self.y.shape[3:]))
        params = {
            name: v[1:] if isinstance(v, tuple) else v
            for name, v in self.params.items()
            if name != "shape"
        }
        return x, self.w.like(shape=(k, c * taps, *self.w.shape[3:])), y, params

    def depth(self) -> tuple[int, int, int]:
        return tuple(self.params[name][0] for name in ("stride", "padding", "dilation"))

    def gathered(self) -> NativeCall:
        """x -> the planes that each plane of y needs, side by side as channels."""
        (n, c, d, h, w), taps = self.of_group(self.x).shape, self.w.shape[2]
        stride, padding, dilation = self.depth()
        whole = spec(self.x.dtype, (n, self.y.shape[2], c, taps, h, w))
        x = buffer("x0", self.of_group(self.x))

        def body(i):
            at = i[1] * stride + i[3] * dilation - padding
            inside = (at >= 0) & (at < d)
            return guarded(inside, x, (i[0], i[2], at, i[4], i[5]))

        made = nest(whole.shape, body, out=buffer("out0", whole))
        return call_of(made, [self.of_group(self.x)], (whole,), False)

    def spread(self) -> NativeCall:
        """The adjoint of `gathered`."""
        x = self.of_group(self.x)
        (n, c, _, h, w), (taps, depth) = x.shape, (self.w.shape[2], self.y.shape[2])
        stride, padding, dilation = self.depth()
        whole = spec(x.dtype, (n, depth, c, taps, h, w))
        g = buffer("x0", whole)

        def body(i):
            def term(r):
                at = i[2] + padding - r[0] * dilation
                z = at // stride
                hit = (at >= 0) & (z < depth)
                if stride > 1:
                    hit = hit & (at - z * stride < 1)
                return widened(
                    guarded(hit, g, (i[0], z, i[1], r[0], i[3], i[4]), const(0, g.dtype))
                )

            return reduce("add", (taps,), term)

        return call_of(nest(x.shape, body, out=buffer("out0", x)), [whole], (x,), False)

    def swapped(self, outward: bool) -> NativeCall:
        """y's planes as pictures, or (`outward`) pictures as y's planes."""
        y = self.of_group(self.y)
        n, k, d, h, w = y.shape
        planes = spec(y.dtype, (n, d, k, h, w))
        given, made = (planes, y) if outward else (y, planes)
        x = buffer("x0", given)
        body = nest(made.shape, lambda i: x[i[0], i[2], i[1], i[3], i[4]], out=buffer("out0", made))
        return call_of(body, [given], (made,), False)


def volume_plan(primitive, specs: list, params: dict, result) -> Callable | None:
    """The eager plan of conv, conv_input or conv_weight in three dimensions, or None."""
    if primitive.name == "conv":
        found = Volumes(specs[0], specs[1], result, params)
    elif primitive.name == "conv_input":
        found = Volumes(result, specs[1], specs[0], params)
    elif primitive.name != "conv_weight":
        return None
    else:
        found = Volumes(specs[1], result, specs[0], params)
    whole = (found.x, found.w, found.y)
    if not all(s.is_contiguous and s.numel for s in whole):
        return None
    return {"conv": forward, "conv_input": input_grad, "conv_weight": weight_grad}[primitive.name](
        found
    )


def forward(v: Volumes) -> Callable | None:
    x, w, y, params = v.pictures()
    bias = spec(v.x.dtype, (v.w.shape[0],))
    calls = [conv_call(REGISTRY["conv"], [x, w, b], params, y) for b in (None, bias)]
    if None in calls:
        return None
    gathered, back = v.gathered(), v.swapped(outward=True)

    def run(volume, weight, b):
        call = calls[b is not None]
        out, pictures, planes = empty_array(v.y), empty_array(x), empty_array(y)
        ends = [] if b is None else [address(b._array)]
        for source, target in zip(groups(volume._array, v), groups(out, v)):
            gathered.entry(source, address(pictures))
            call.entry(address(pictures), address(weight._array), address(planes), *ends)
            back.entry(address(planes), target)
        return make(out, v.y)

    return run


def input_grad(v: Volumes) -> Callable | None:
    x, w, y, params = v.pictures()
    call = conv_call(REGISTRY["conv_input"], [y, w], params, x)
    if call is None:
        return None
    spread, planes_of = v.spread(), v.swapped(outward=False)

    def run(ct, weight):
        out, pictures, planes = empty_array(v.x), empty_array(x), empty_array(y)
        for source, target in zip(groups(ct._array, v), groups(out, v)):
            planes_of.entry(source, address(planes))
            call.entry(address(planes), address(weight._array), address(pictures))
            spread.entry(address(pictures), target)
        return make(out, v.x)

    return run


def weight_grad(v: Volumes) -> Callable | None:
    x, w, y, params = v.pictures()
    call = conv_call(REGISTRY["conv_weight"], [y, x], params, w)
    if call is None:
        return None
    gathered, planes_of = v.gathered(), v.swapped(outward=False)

    def run(ct, volume):
        out, pictures, planes = empty_array(v.w), empty_array(x), empty_array(y)
        part = out
        for at, (source, given) in enumerate(zip(groups(volume._array, v), groups(ct._array, v))):
            gathered.entry(source, address(pictures))
            planes_of.entry(given, address(planes))
            call.entry(address(pictures), address(planes), address(part))
            if at:
                np.add(out, part, out=out)
            else:
                part = empty_array(v.w) if v.group() < v.x.shape[0] else out
        return make(out, v.w)

    return run


def groups(whole: np.ndarray, v: Volumes):
    """The address of each group of samples."""
    step = v.group() * whole.strides[0]
    return range(address(whole), address(whole) + whole.shape[0] // v.group() * step, step)
