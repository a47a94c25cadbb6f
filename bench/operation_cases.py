"""Single operations, each written once for flambeau and for PyTorch.

A case is a function of the framework's module and a number of elements. It returns the call and its
operands; those of floating point get gradients in the backward measurement.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

Work = tuple[Callable[..., Any], tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Operation:
    """A named case: `make(framework, n)` gives a call and its operands."""

    name: str
    make: Callable[[ModuleType, int], Work]
    backward: bool
    sized: bool


OPERATIONS: dict[str, Operation] = {}


def operation(backward: bool = True, sized: bool = True):
    """Register a case; `sized` is false where the number of elements is fixed."""

    def register(make: Callable[[ModuleType, int], Work]) -> Callable[[ModuleType, int], Work]:
        name = make.__name__
        OPERATIONS[name] = Operation(name, make, backward, sized)
        return make

    return register


def normal(torch: ModuleType, *shape: int, seed: int = 0):
    """Normal numbers, the same in both frameworks."""
    values = np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)
    return torch.from_numpy(values).clone()


def whole(torch: ModuleType, high: int, *shape: int):
    """Integers below `high`, the same in both frameworks."""
    return torch.from_numpy(np.random.default_rng(high).integers(0, high, shape)).clone()


def rows(n: int, width: int) -> tuple[int, int]:
    return max(1, n // width), width


def images(n: int, channels: int, side: int) -> tuple[int, int, int, int]:
    return max(1, n // (channels * side * side)), channels, side, side


def square(n: int) -> tuple[int, int]:
    side = math.isqrt(n)
    return side, side


# elementwise ---------------------------------------------------------------------------------


@operation()
def add(torch, n):
    return torch.add, (normal(torch, n), normal(torch, n) * 2)


@operation()
def transposed_add(torch, n):
    return lambda x, y: x + y.t(), (normal(torch, *square(n)), normal(torch, *square(n)) * 2)


@operation()
def gelu(torch, n):
    return torch.nn.functional.gelu, (normal(torch, n),)


@operation()
def chain(torch, n):
    def call(x):
        t = torch.relu(x * 2 + 1) * 0.5 - x
        return (t.abs().sqrt() + 0.25) * x

    return call, (normal(torch, n),)


@operation()
def where(torch, n):
    x, y = normal(torch, n), normal(torch, n) * 2
    mask = normal(torch, n) > 0
    return lambda x, y: torch.where(mask, x, y), (x, y)


@operation()
def masked_fill(torch, n):
    mask = normal(torch, n) > 0
    return lambda x: x.masked_fill(mask, 0.5), (normal(torch, n),)


@operation()
def dropout(torch, n):
    return lambda x: torch.nn.functional.dropout(x, 0.1, True), (normal(torch, n),)


# reductions ----------------------------------------------------------------------------------


@operation()
def sum_all(torch, n):
    return torch.sum, (normal(torch, n),)


@operation()
def sum_axis0(torch, n):
    return lambda x: x.sum(0), (normal(torch, *square(n)),)


@operation()
def var(torch, n):
    return lambda x: x.var(-1), (normal(torch, *rows(n, 512)),)


@operation()
def logsumexp(torch, n):
    return lambda x: x.logsumexp(-1), (normal(torch, *rows(n, 512)),)


@operation(backward=False)
def argmax(torch, n):
    return lambda x: x.argmax(-1), (normal(torch, *rows(n, 512)),)


@operation()
def softmax(torch, n):
    return lambda x: torch.softmax(x, -1), (normal(torch, *rows(n, 512)),)


@operation()
def cross_entropy(torch, n):
    m, classes = rows(n, 4096)
    target = whole(torch, classes, m)
    cross_entropy = torch.nn.functional.cross_entropy
    return lambda x: cross_entropy(x, target), (normal(torch, m, classes),)


# normalisation -------------------------------------------------------------------------------


def channels_last(torch, x):
    return x.contiguous(memory_format=torch.channels_last)


def affine(torch, channels):
    return normal(torch, channels), normal(torch, channels) * 2


@operation()
def layer_norm(torch, n):
    m, width = rows(n, 768)
    norm = torch.nn.functional.layer_norm
    operands = normal(torch, m, width), *affine(torch, width)
    return lambda x, w, b: norm(x, (width,), w, b), operands


@operation()
def rms_norm(torch, n):
    m, width = rows(n, 768)
    norm = torch.nn.functional.rms_norm
    return lambda x, w: norm(x, (width,), w), (normal(torch, m, width), normal(torch, width))


def batch_normalised(torch, x, training):
    channels, norm = x.shape[1], torch.nn.functional.batch_norm
    mean, variance = normal(torch, channels), normal(torch, channels).abs()
    return (
        lambda x, w, b: norm(x, mean, variance, w, b, training),
        (x, *affine(torch, channels)),
    )


@operation()
def batch_norm(torch, n):
    return batch_normalised(torch, normal(torch, *images(n, 64, 16)), True)


@operation()
def batch_norm_last(torch, n):
    x = channels_last(torch, normal(torch, *images(n, 64, 16)))
    return batch_normalised(torch, x, True)


@operation()
def batch_norm_eval(torch, n):
    return batch_normalised(torch, normal(torch, *images(n, 64, 16)), False)


@operation()
def batch_norm_eval_last(torch, n):
    x = channels_last(torch, normal(torch, *images(n, 64, 16)))
    return batch_normalised(torch, x, False)


def group_normalised(torch, x):
    norm = torch.nn.functional.group_norm
    return lambda x, w, b: norm(x, 8, w, b), (x, *affine(torch, x.shape[1]))


@operation()
def group_norm(torch, n):
    return group_normalised(torch, normal(torch, *images(n, 64, 16)))


@operation()
def group_norm_last(torch, n):
    return group_normalised(torch, channels_last(torch, normal(torch, *images(n, 64, 16))))


@operation()
def instance_norm(torch, n):
    norm = torch.nn.functional.instance_norm
    operands = normal(torch, *images(n, 64, 16)), *affine(torch, 64)
    return lambda x, w, b: norm(x, None, None, w, b), operands


# convolution and pooling ---------------------------------------------------------------------


@operation()
def conv(torch, n):
    operands = normal(torch, *images(n, 64, 16)), normal(torch, 64, 64, 3, 3), normal(torch, 64)
    return lambda x, w, b: torch.nn.functional.conv2d(x, w, b, 1, 1), operands


@operation()
def conv_stride2(torch, n):
    operands = normal(torch, *images(n, 64, 16)), normal(torch, 64, 64, 3, 3), normal(torch, 64)
    return lambda x, w, b: torch.nn.functional.conv2d(x, w, b, 2, 1), operands


@operation()
def conv_depthwise(torch, n):
    operands = normal(torch, *images(n, 64, 16)), normal(torch, 64, 1, 3, 3), normal(torch, 64)
    return lambda x, w, b: torch.nn.functional.conv2d(x, w, b, 1, 1, 1, 64), operands


@operation()
def conv_transposed(torch, n):
    operands = normal(torch, *images(n, 64, 16)), normal(torch, 64, 32, 4, 4), normal(torch, 32)
    return lambda x, w, b: torch.nn.functional.conv_transpose2d(x, w, b, 2, 1), operands


@operation()
def conv1d(torch, n):
    x = normal(torch, max(1, n // 8192), 64, 128)
    operands = x, normal(torch, 64, 64, 3), normal(torch, 64)
    return lambda x, w, b: torch.nn.functional.conv1d(x, w, b, 1, 1), operands


@operation()
def conv3d(torch, n):
    x = normal(torch, max(1, n // 16384), 32, 8, 8, 8)
    operands = x, normal(torch, 32, 32, 3, 3, 3), normal(torch, 32)
    return lambda x, w, b: torch.nn.functional.conv3d(x, w, b, 1, 1), operands


@operation()
def max_pool(torch, n):
    return lambda x: torch.nn.functional.max_pool2d(x, 2), (normal(torch, *images(n, 16, 28)),)


@operation()
def max_pool_3(torch, n):
    pool = torch.nn.functional.max_pool2d
    return lambda x: pool(x, 3, 2, 1), (normal(torch, *images(n, 16, 28)),)


@operation()
def avg_pool(torch, n):
    return lambda x: torch.nn.functional.avg_pool2d(x, 2), (normal(torch, *images(n, 16, 28)),)


# products ------------------------------------------------------------------------------------


@operation()
def matmul(torch, n):
    side = min(math.isqrt(n), 1024)
    return torch.matmul, (normal(torch, side, side), normal(torch, side, side) * 2)


@operation()
def bmm(torch, n):
    x = normal(torch, max(1, n // 4096), 64, 64)
    return torch.bmm, (x, x * 2)


@operation()
def einsum(torch, n):
    x = normal(torch, max(1, n // 8192), 64, 2, 64)
    return lambda x, y: torch.einsum("bihd,bjhd->bhij", x, y), (x, x * 2)


@operation()
def attention(torch, n):
    shape = max(1, n // 32768), 4, 128, 64
    call = torch.nn.functional.scaled_dot_product_attention
    x = normal(torch, *shape)
    return lambda q, k, v: call(q, k, v, is_causal=True), (x, x * 2, x * 3)


# order and places ----------------------------------------------------------------------------


@operation()
def cumsum(torch, n):
    return lambda x: x.cumsum(-1), (normal(torch, *rows(n, 512)),)


@operation()
def sort(torch, n):
    return lambda x: x.sort(-1)[0], (normal(torch, *rows(n, 512)),)


@operation()
def topk(torch, n):
    return lambda x: x.topk(8, -1)[0], (normal(torch, *rows(n, 512)),)


@operation()
def embedding(torch, n):
    index = whole(torch, 5000, max(1, n // 256))
    call = torch.nn.functional.embedding
    return lambda w: call(index, w), (normal(torch, 5000, 256),)


@operation()
def gather(torch, n):
    index = whole(torch, 512, *rows(n, 512))
    return lambda x: x.gather(1, index), (normal(torch, *rows(n, 512)),)


@operation()
def index_select(torch, n):
    m, width = rows(n, 512)
    index = whole(torch, m, m)
    return lambda x: x.index_select(0, index), (normal(torch, m, width),)


@operation()
def index_put(torch, n):
    m, width = rows(n, 512)
    index = whole(torch, m, max(1, m // 2))
    operands = normal(torch, m, width), normal(torch, max(1, m // 2), width)
    return lambda x, y: x.index_put((index,), y, accumulate=True), operands


@operation()
def scatter_add(torch, n):
    index = whole(torch, 512, *rows(n, 512))
    x, y = normal(torch, *rows(n, 512)), normal(torch, *rows(n, 512)) * 2
    return lambda x, y: x.scatter_add(1, index, y), (x, y)


@operation()
def cat(torch, n):
    x = normal(torch, *rows(n // 2, 256))
    return lambda x, y: torch.cat([x, y], 1), (x, x * 2)


@operation()
def stack(torch, n):
    x = normal(torch, n // 2)
    return lambda x, y: torch.stack([x, y]), (x, x * 2)


@operation()
def flip(torch, n):
    return lambda x: x.flip(-1), (normal(torch, *rows(n, 512)),)


@operation()
def roll(torch, n):
    return lambda x: x.roll(7, -1), (normal(torch, *rows(n, 512)),)


@operation()
def tril(torch, n):
    return torch.tril, (normal(torch, *square(n)),)


@operation()
def pad(torch, n):
    return lambda x: torch.nn.functional.pad(x, (1, 1, 1, 1)), (normal(torch, *images(n, 16, 28)),)


# optimizers ----------------------------------------------------------------------------------


@operation(backward=False, sized=False)
def adam(torch, _n):
    """One step of Adam on ten million parameters."""
    parameters = [torch.nn.Parameter(normal(torch, 1000, 1000)) for _ in range(10)]
    for parameter in parameters:
        parameter.grad = normal(torch, 1000, 1000)
    return torch.optim.Adam(parameters, lr=1e-9).step, ()
