"""One- and two-dimensional convolutions and their gradients by generated kernels."""

from __future__ import annotations

import os

from flambeau.core import dtype as dtypes
from flambeau.core.errors import OpError, complaint
from flambeau.core.spec import Spec, channels_last_strides
from flambeau.eager.native.call import NativeCall

KINDS = (dtypes.float32, dtypes.float64, dtypes.bfloat16)
NAMES = ("conv", "conv_input", "conv_weight", "conv_affine")
SMALL = 1 << 12  # multiply-adds


def winograd_tile() -> int:
    """FLAMBEAU_WINOGRAD: the side of tiles of 3 x 3 convolutions, 4 or 2, or 0 for direct sums."""
    chosen = os.environ.get("FLAMBEAU_WINOGRAD", "4")
    if chosen not in ("0", "2", "4"):
        raise OpError(complaint("conv", "FLAMBEAU_WINOGRAD must be 0, 2 or 4", {"got": chosen}))
    return int(chosen)


def layout_of(s: Spec) -> str | None:
    """NCHW, NHWC or None; a tensor that is both counts as NCHW."""
    if s.is_contiguous:
        return "NCHW"
    if s.ndim != 4:
        return None
    wanted = channels_last_strides(s.shape)
    same = all(n == 1 or a == b for n, a, b in zip(s.shape, s.strides, wanted))
    return "NHWC" if same else None


def conv_spec(x: Spec, w: Spec, y: Spec, params: dict):
    """The templates' description, or None where they do not apply."""
    layouts = [layout_of(s) for s in (x, w, y)]
    if x.ndim not in (3, 4) or x.dtype not in KINDS or None in layouts or any(
            0 in s.shape for s in (x, w, y)):
        return None
    if y.numel * w.numel // w.shape[0] < SMALL:
        return None
    from flambeau.codegen.templates import ConvSpec

    stride, dilation = (pair(params[name], 1) for name in ("stride", "dilation"))
    spec = ConvSpec(*x.shape[:2], *pair(x.shape[2:], 1), w.shape[0], *pair(w.shape[2:], 1), stride,
                    pair(params["padding"], 0), dilation, params["groups"],
                    x_layout=layouts[0], w_layout=layouts[1], y_layout=layouts[2],
                    dtype=x.dtype.name, winograd=winograd_tile())
    return spec if (spec.out_h, spec.out_w) == pair(y.shape[2:], 1) else None


def pair(values: tuple, fill: int) -> tuple[int, int]:
    """Numbers of two dimensions; a picture of one has a single row."""
    return tuple(values) if len(values) == 2 else (fill, *values)


def epilogue_name(bias: Spec | None, activation: str) -> str | None:
    """The epilogue for a bias, an activation or both."""
    return "_".join(filter(None, ("" if bias is None else "bias", activation))) or None


def conv_call(primitive, specs: list, params: dict, result,
              activation: str = "") -> NativeCall | None:
    """The convolutions of NAMES; an activation of conv's result."""
    if primitive.name not in NAMES:
        return None
    from flambeau.codegen import templates

    if primitive.name == "conv_affine":
        return _affine(templates, specs, params, result)
    if primitive.name == "conv":
        return _forward(templates, specs, params, result, activation)
    if primitive.name == "conv_input":
        g, w = specs
        found = conv_spec(result, w, g, params)
        make_program = templates.conv_input_grad
    else:
        g, x = specs
        found = conv_spec(x, result, g, params)
        make_program = templates.conv_weight_grad
    if found is None:
        return None
    arguments = (1, 0, ~0) if primitive.name == "conv_weight" else (0, 1, ~0)
    return NativeCall(make_program(found), arguments, (result,))


def _forward(templates, specs: list, params: dict, result,
             activation: str) -> NativeCall | None:
    x, w, b = specs
    found = conv_spec(x, w, result, params)
    if found is None or (b is not None and b.strides != (1,)):
        return None
    program = templates.conv_forward(found, epilogue=epilogue_name(b, activation))
    return NativeCall(program, (0, 1, ~0) if b is None else (0, 1, ~0, 2), (result,))


def _affine(templates, specs: list, params: dict, result) -> NativeCall | None:
    x, w, scale, shift = specs
    found = conv_spec(x, w, result, params)
    if found is None or scale.strides != (1,) or shift.strides != (1,):
        return None
    program = templates.conv_forward(found, epilogue="scale_shift_relu")
    return NativeCall(program, (0, 1, ~0, 2, 3), (result,))
