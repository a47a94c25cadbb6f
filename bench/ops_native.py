"""Generated kernels of single operations against PyTorch, in alternation, minima of many runs.

    python bench/ops_native.py [NAME ...]

Prints microseconds of ours and of PyTorch at 2^14, 2^18 and 2^22 elements on THREADS (two) threads,
and how many times faster ours is. The compile time of each kernel (empty cache) stands at the end.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

os.environ.setdefault("FLAMBEAU_CACHE", "0")

import numpy as np
import torch
from timing import minima

from flambeau.codegen.kernel import Kernel, compile_kernel
from flambeau.loops.api import Buf, check, maximum, nest, reduce, scan, unary
from flambeau.runtime import pool

THREADS = int(os.environ.get("THREADS", "2"))
SIZES = (14, 18, 22)
ROUNDS = 6


def rows(n: int, width: int) -> tuple[int, int]:
    return max(1, n // width), width


def add(n: int):
    x, y = Buf("x", (n,)), Buf("y", (n,))
    a, b = torch.randn(n), torch.randn(n)
    return nest((n,), lambda i: x[i] + y[i]), dict(x=a, y=b), lambda: a + b


def gelu(n: int):
    x = Buf("x", (n,))
    a = torch.randn(n)
    lowered = nest((n,), lambda i: x[i] * 0.5 * (unary("erf", x[i] * 0.5**0.5) + 1.0))
    return lowered, dict(x=a), lambda: torch.nn.functional.gelu(a)


def chain(n: int):
    x = Buf("x", (n,))
    a = torch.randn(n)

    def body(i):
        t = maximum(x[i] * 2.0 + 1.0, 0.0) * 0.5 - x[i]
        return (unary("sqrt", unary("abs", t)) + 0.25) * x[i]

    def reference():
        t = torch.relu(a * 2 + 1) * 0.5 - a
        return (t.abs().sqrt() + 0.25) * a

    return nest((n,), body), dict(x=a), reference


def softmax(n: int):
    m, k = rows(n, 512)
    x = Buf("x", (m, k))
    a = torch.randn(m, k)

    def body(i):
        top = reduce("max", (k,), lambda r: x[i[0], r[0]])
        total = reduce("add", (k,), lambda r: unary("exp", x[i[0], r[0]] - top))
        return unary("exp", x[i] - top) * (1.0 / total)

    return nest((m, k), body), dict(x=a), lambda: torch.softmax(a, -1)


def layer_norm(n: int):
    m, k = rows(n, 768)
    x, w, b = Buf("x", (m, k)), Buf("w", (k,)), Buf("b", (k,))
    a, weight, bias = torch.randn(m, k), torch.rand(k), torch.rand(k)

    def body(i):
        mean = reduce("add", (k,), lambda r: x[i[0], r[0]]) * (1.0 / k)
        square = reduce("add", (k,), lambda r: (x[i[0], r[0]] - mean) * (x[i[0], r[0]] - mean))
        scale = unary("rsqrt", square * (1.0 / k) + 1e-5)
        return (x[i] - mean) * scale * w[i[1]] + b[i[1]]

    return (
        nest((m, k), body),
        dict(x=a, w=weight, b=bias),
        lambda: torch.nn.functional.layer_norm(a, (k,), weight, bias),
    )


def sum_all(n: int):
    x = Buf("x", (n,))
    a = torch.randn(n)
    return nest((), lambda i: reduce("add", (n,), lambda r: x[r])), dict(x=a), lambda: a.sum()


def sum_axis0(n: int):
    side = int(n**0.5)
    x = Buf("x", (side, side))
    a = torch.randn(side, side)
    return (
        nest((side,), lambda i: reduce("add", (side,), lambda r: x[r + i])),
        dict(x=a),
        lambda: a.sum(0),
    )


def transposed_add(n: int):
    side = int(n**0.5)
    x, y = Buf("x", (side, side)), Buf("y", (side, side))
    a, b = torch.randn(side, side), torch.randn(side, side)
    return nest((side, side), lambda i: x[i] + y[i[::-1]]), dict(x=a, y=b), lambda: a + b.t()


def cross_entropy(n: int):
    m, k = rows(n, 4096)
    x, t = Buf("x", (m, k)), Buf("t", (m,), None, "int64")
    a, target = torch.randn(m, k), torch.randint(0, k, (m,))

    def row(i):
        top = reduce("max", (k,), lambda r: x[i + r])
        total = reduce("add", (k,), lambda r: unary("exp", x[i + r] - top))
        return top + unary("log", total) - x[i[0], check(t[i], k, "cross_entropy")]

    lowered = nest((), lambda i: reduce("add", (m,), row) * (1.0 / m))
    return lowered, dict(x=a, t=target), lambda: torch.nn.functional.cross_entropy(a, target)


def batch_norm(n: int):
    side, c = 14, 64
    m = max(1, n // (c * side * side))
    shape = (m, c, side, side)
    x, w, b = Buf("x", shape), Buf("w", (c,)), Buf("b", (c,))
    a, weight, bias = torch.randn(shape), torch.rand(c), torch.rand(c)
    count = m * side * side

    def body(i):
        def at(r):
            return x[r[0], i[1], r[1], r[2]]

        mean = reduce("add", (m, side, side), at) * (1.0 / count)
        square = reduce("add", (m, side, side), lambda r: (at(r) - mean) * (at(r) - mean))
        scale = unary("rsqrt", square * (1.0 / count) + 1e-5) * w[i[1]]
        return (x[i] - mean) * scale + b[i[1]]

    def reference():
        return torch.nn.functional.batch_norm(a, None, None, weight, bias, True)

    return nest(shape, body), dict(x=a, w=weight, b=bias), reference


def argmax(n: int):
    m, k = rows(n, 512)
    x = Buf("x", (m, k))
    a = torch.randn(m, k)
    lowered = nest((m,), lambda i: reduce("argmax", (k,), lambda r: x[i + r])[1])
    return lowered, dict(x=a), lambda: a.argmax(1)


def cumsum(n: int):
    m, k = rows(n, 512)
    x = Buf("x", (m, k))
    a = torch.randn(m, k)
    return nest((m, k), lambda i: scan("add", i[1], x[i])), dict(x=a), lambda: a.cumsum(1)


def embedding(n: int):
    m, k = rows(n, 256)
    w, t = Buf("w", (5000, k)), Buf("t", (m,), None, "int64")
    a, index = torch.randn(5000, k), torch.randint(0, 5000, (m,))
    lowered = nest((m, k), lambda i: w[check(t[i[:1]], 5000, "embedding"), i[1]])
    return lowered, dict(w=a, t=index), lambda: torch.nn.functional.embedding(index, a)


def max_pool(n: int):
    side = 28
    m = max(1, n // (16 * side * side))
    x = Buf("x", (m, 16, side, side))
    a = torch.randn(m, 16, side, side)

    def body(i):
        return reduce("max", (2, 2), lambda r: x[i[0], i[1], i[2] * 2 + r[0], i[3] * 2 + r[1]])

    return (
        nest((m, 16, side // 2, side // 2), body),
        dict(x=a),
        lambda: torch.nn.functional.max_pool2d(a, 2),
    )


CASES: dict[str, Callable] = dict(
    add=add,
    gelu=gelu,
    chain=chain,
    softmax=softmax,
    layer_norm=layer_norm,
    sum_all=sum_all,
    sum_axis0=sum_axis0,
    transposed_add=transposed_add,
    cross_entropy=cross_entropy,
    batch_norm=batch_norm,
    argmax=argmax,
    cumsum=cumsum,
    embedding=embedding,
    max_pool=max_pool,
)


def case(name: str, n: int) -> tuple[float, float, float, Kernel]:
    lowered, inputs, reference = CASES[name](n)
    start = time.perf_counter()
    kernel = compile_kernel(lowered)
    compile_seconds = time.perf_counter() - start
    wanted = reference()
    out = torch.empty_like(wanted).contiguous().numpy()
    addresses = [
        inputs[p].data_ptr() if p in inputs else out.ctypes.data for p in kernel.parameters
    ]
    kernel.entry(*addresses)
    np.testing.assert_allclose(out, wanted.numpy(), rtol=2e-4, atol=2e-4 * n**0.5 / 16)
    ours, theirs = minima([lambda: kernel.entry(*addresses), reference], ROUNDS)
    return ours, theirs, compile_seconds, kernel


def main(names: list[str]) -> None:
    torch.set_num_threads(THREADS)
    pool.set_num_threads(THREADS)
    print(
        f"{'us, ours / PyTorch':16}" + "".join(f"{f'2^{s}':>28}" for s in SIZES) + "   compile ms"
    )
    for name in names or CASES:
        line, compiles = f"{name:16}", []
        for s in SIZES:
            ours, theirs, spent, _ = case(name, 1 << s)
            line += f"{f'{ours * 1e6:.1f} / {theirs * 1e6:.1f}  x{theirs / ours:.2f}':>28}"
            compiles.append(f"{spent * 1e3:.0f}")
        print(line, "  " + " ".join(compiles), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
