"""What a pooling over two-dimensional windows computes."""

from __future__ import annotations

from dataclasses import dataclass

Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class PoolSpec:
    """Sizes: n images of c channels, h x w to out_h x out_w; pairs are (h, w).

    The caller decides the output's size (``ceil_mode``); windows are clipped to the picture. For
    averages, `count_padding` counts the padding on both sides as elements, and `divisor` above 0
    replaces the count. Indices, of a maximum in its plane, are ``int32`` or ``int64``.
    """

    n: int
    c: int
    h: int
    w: int
    out_h: int
    out_w: int
    window: Pair
    stride: Pair
    padding: Pair = (0, 0)
    dilation: Pair = (1, 1)
    layout: str = "NCHW"
    dtype: str = "float32"
    indices: str = "int64"
    count_padding: bool = True
    divisor: int = 0
