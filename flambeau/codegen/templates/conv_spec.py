"""What a two-dimensional convolution computes, and where its operands' elements are.

    y[n, k, i, j] = sum over c, r, s of w[k, c, r, s] x[n, c, i', j']
    i' = i * stride + r * dilation - padding, and j' alike from j and s

Operands are dense. ``NCHW`` and ``NHWC`` say which dimension is innermost; for the weight they read
K C R S and K R S C, and ``HWIO`` is R S C K.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class ConvSpec:
    """Sizes: images n, channels in c and out k, picture h x w, window r x s; pairs are (h, w).

    `winograd` is the tile of the faster algorithm for 3 x 3 windows of stride 1: 4 has about 5
    times the mean error of summing directly, 2 about the same error, 0 sums directly.
    """

    n: int
    c: int
    h: int
    w: int
    k: int
    r: int
    s: int
    stride: Pair = (1, 1)
    padding: Pair = (0, 0)
    dilation: Pair = (1, 1)
    groups: int = 1
    x_layout: str = "NCHW"
    w_layout: str = "NCHW"
    y_layout: str = "NCHW"
    dtype: str = "float32"
    winograd: int = 4

    @property
    def out_h(self) -> int:
        span = self.dilation[0] * (self.r - 1) + 1
        return (self.h + 2 * self.padding[0] - span) // self.stride[0] + 1

    @property
    def out_w(self) -> int:
        span = self.dilation[1] * (self.s - 1) + 1
        return (self.w + 2 * self.padding[1] - span) // self.stride[1] + 1

    @property
    def group_c(self) -> int:
        return self.c // self.groups

    @property
    def group_k(self) -> int:
        return self.k // self.groups

    @property
    def flops(self) -> float:
        window = 2.0 * self.r * self.s * self.group_c
        return window * self.n * self.k * self.out_h * self.out_w

    @property
    def x_count(self) -> int:
        return self.n * self.c * self.h * self.w

    @property
    def y_count(self) -> int:
        return self.n * self.k * self.out_h * self.out_w

    @property
    def w_count(self) -> int:
        return self.k * self.group_c * self.r * self.s

    @property
    def w_strides(self) -> tuple[int, int, int, int]:
        """Elements between neighbours along k, c, r and s of the weight."""
        c, r, s = self.group_c, self.r, self.s
        if self.w_layout == "NHWC":
            return r * s * c, 1, s * c, c
        if self.w_layout == "HWIO":
            return 1, self.k, s * c * self.k, c * self.k
        return c * r * s, r * s, s, 1

    def with_layout(self, layout: str) -> ConvSpec:
        """The same convolution with x and y in `layout`."""
        return replace(self, x_layout=layout, y_layout=layout)


def picture_strides(layout: str, channels: int, h: int, w: int) -> tuple[int, int, int]:
    """Elements between neighbours along channel, row and column of one image."""
    return (h * w, w, 1) if layout == "NCHW" else (1, w * channels, channels)
