"""Views: the batch is one more leading dimension of the window."""

from __future__ import annotations

from typing import Any

from flambeau.func.rules.register import padded, rule_of, spread
from flambeau.ops.registry import Primitive
from flambeau.ops.windows import extent


@rule_of("permute")
def permute(size: int, primitive: Primitive, values: list, here: list, params: dict) -> Any:
    return primitive(values[0], dims=(0, *(d + 1 for d in params["dims"])))


@rule_of("expand")
def expand(size: int, primitive: Primitive, values: list, here: list, params: dict) -> Any:
    shape = (size, *params["shape"])
    return primitive(padded(values[0], len(shape)), shape=shape)


@rule_of("view")
def view(size: int, primitive: Primitive, values: list, here: list, params: dict) -> Any:
    return primitive(values[0], shape=(size, *params["shape"]))


@rule_of("as_strided")
def as_strided(size: int, primitive: Primitive, values: list, here: list, params: dict) -> Any:
    stride = values[0].stride(0)
    return primitive(
        values[0],
        size=(size, *params["size"]),
        stride=(stride, *params["stride"]),
        offset=params["offset"],
    )


@rule_of("diagonal")
def diagonal(size: int, primitive: Primitive, values: list, here: list, params: dict) -> Any:
    dims = {key: params[key] + 1 for key in ("dim1", "dim2")}
    return primitive(values[0], offset=params["offset"], **dims)


@rule_of("window_read", "window_write", "window_add")
def window(size: int, primitive: Primitive, values: list, here: list, params: dict) -> Any:
    """A window in each slice of a dense tensor whose slices lie one after the other."""
    values = [spread(size, v, h) for v, h in zip(values, here)]
    shape = params.get("shape", values[0].shape[1:])
    step = max(extent(tuple(shape), params["layout"]), 1)
    params = {
        **params,
        "layout": (step, *params["layout"]),
        "size": (size, *params["size"]),
        "stride": (step, *params["stride"]),
    }
    if "shape" in params:
        params["shape"] = (size, *params["shape"])
    return primitive(*values, **params)


@rule_of("pad")
def pad(size: int, primitive: Primitive, values: list, here: list, params: dict) -> Any:
    return primitive(values[0], widths=((0, 0), *params["widths"]), value=params["value"])
