"""Heavy kernels against PyTorch's, in alternation: ratios of minima.

    python bench/kernels.py                     # every family
    python bench/kernels.py --only 'conv.*56'   # cases whose name matches
    python bench/kernels.py --threads 1 --rounds 20 --json out.json

A ratio above 1 means that the generated kernel is faster. Each side gets short turns with a pause
before them, so that spinning worker threads of the other side have gone to sleep. With one thread,
processor time is compared and not the clock on the wall: other programs disturb it less.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from timing import Call, geometric_mean, minima

from flambeau.codegen import templates
from flambeau.codegen.templates.attention_spec import AttentionSpec
from flambeau.codegen.templates.conv_spec import ConvSpec
from flambeau.codegen.templates.pool_spec import PoolSpec
from flambeau.runtime import allocator, pool


@dataclass
class Case:
    """One comparison; `make` gives our call and PyTorch's."""

    name: str
    flops: float
    make: Callable[[], tuple[Call, Call]]


def array(*shape: int) -> np.ndarray:
    """Normal numbers, aligned as tensors are."""
    count = math.prod(shape)
    out = allocator.allocate(4 * count).view(np.float32).reshape(shape)
    out[...] = np.random.default_rng(count).standard_normal(shape, dtype=np.float32)
    return out


def address(*arrays: np.ndarray) -> list[int]:
    return [a.ctypes.data for a in arrays]


def gemm_cases() -> Iterator[Case]:
    shapes = [
        (64, 256, 784, "nt"), (256, 784, 64, "tn"), (64, 10, 256, "nt"), (128, 1024, 784, "nt"),
        (128, 1024, 1024, "nn"), (1024, 1024, 128, "tn"), (2048, 768, 256, "nt"),
        (2048, 1024, 256, "nt"), (2048, 256, 1024, "nn"), (768, 256, 2048, "tn"),
        (1024, 1024, 1024, "nn"), (2048, 2048, 2048, "nn"), (1, 4096, 4096, "nt"),
        (4, 4096, 4096, "nt"),
    ]  # fmt: skip
    for m, n, k, kind in shapes:

        def make(m=m, n=n, k=k, ta=kind[0] == "t", tb=kind[1] == "t"):
            a, b, c = (
                array(*((k, m) if ta else (m, k))),
                array(*((n, k) if tb else (k, n))),
                array(m, n),
            )
            program, ins = templates.gemm(m, n, k, "float32", ta, tb), address(a, b, c)
            x, y, out = torch.from_numpy(a), torch.from_numpy(b), torch.empty(m, n)
            x, y = x.t() if ta else x, y.t() if tb else y
            keep = (a, b, c)
            return (lambda: program(*ins) or keep), (lambda: torch.mm(x, y, out=out))

        yield Case(f"gemm {m}x{n}x{k} {kind}", 2.0 * m * n * k, make)


def bfloat_cases() -> Iterator[Case]:
    shapes = [
        (64, 256, 784, "nt"), (2048, 768, 256, "nt"), (2048, 256, 1024, "nn"),
        (768, 256, 2048, "tn"), (1024, 1024, 1024, "nn"), (2048, 2048, 2048, "nt"),
    ]  # fmt: skip
    for m, n, k, kind in shapes:

        def make(m=m, n=n, k=k, ta=kind[0] == "t", tb=kind[1] == "t"):
            x = torch.randn((k, m) if ta else (m, k)).bfloat16()
            y = torch.randn((n, k) if tb else (k, n)).bfloat16()
            c, out = torch.empty(m, n).bfloat16(), torch.empty(m, n).bfloat16()
            program = templates.gemm(m, n, k, "bfloat16", ta, tb)
            ins = [t.data_ptr() for t in (x, y, c)]
            a, b = x.t() if ta else x, y.t() if tb else y
            return (lambda: program(*ins) or c), (lambda: torch.mm(a, b, out=out))

        yield Case(f"gemm bfloat16 {m}x{n}x{k} {kind}", 2.0 * m * n * k, make)


CONVS = {
    "stem 224": ConvSpec(8, 3, 224, 224, 64, 7, 7, (2, 2), (3, 3)),
    "56 64": ConvSpec(8, 64, 56, 56, 64, 3, 3, padding=(1, 1)),
    "56 64 128 s2": ConvSpec(8, 64, 56, 56, 128, 3, 3, (2, 2), (1, 1)),
    "28 128": ConvSpec(8, 128, 28, 28, 128, 3, 3, padding=(1, 1)),
    "14 256": ConvSpec(8, 256, 14, 14, 256, 3, 3, padding=(1, 1)),
    "7 512": ConvSpec(8, 512, 7, 7, 512, 3, 3, padding=(1, 1)),
    "56 64 128 1x1 s2": ConvSpec(8, 64, 56, 56, 128, 1, 1, (2, 2)),
    "28 128 1x1": ConvSpec(8, 128, 28, 28, 128, 1, 1),
    "mnist 1 32": ConvSpec(64, 1, 28, 28, 32, 3, 3),
    "mnist 32 64": ConvSpec(64, 32, 26, 26, 64, 3, 3),
    "depthwise 56 128": ConvSpec(8, 128, 56, 56, 128, 3, 3, padding=(1, 1), groups=128),
}


def physical(a: torch.Tensor, layout: str) -> np.ndarray:
    """The memory of a tensor in a layout, aligned."""
    dense = a.permute(0, 2, 3, 1) if layout == "NHWC" else a
    out = array(*dense.shape)
    out[...] = dense.numpy()
    return out


def conv_case(label: str, spec: ConvSpec, layout: str, which: str) -> Case:
    spec = ConvSpec(
        spec.n, spec.c, spec.h, spec.w, spec.k, spec.r, spec.s, spec.stride, spec.padding,
        spec.dilation, spec.groups, layout, layout, layout,
    )  # fmt: skip

    def make() -> tuple[Call, Call]:
        x = torch.randn(spec.n, spec.c, spec.h, spec.w)
        w = torch.randn(spec.k, spec.group_c, spec.r, spec.s)
        dy = torch.randn(spec.n, spec.k, spec.out_h, spec.out_w)
        xs, ws, dys = (physical(t, layout) for t in (x, w, dy))
        form = torch.channels_last if layout == "NHWC" else torch.contiguous_format
        x, w, dy = (t.contiguous(memory_format=form) for t in (x, w, dy))
        given = (list(spec.stride), list(spec.padding), list(spec.dilation))
        if which == "fwd":
            program, arrays = templates.conv_forward(spec), (xs, ws, dys.copy())
            theirs = lambda: F.conv2d(x, w, None, *given, spec.groups)
        else:
            mask = [which == "dx", which == "dw", False]
            kind = templates.conv_input_grad if which == "dx" else templates.conv_weight_grad
            program = kind(spec)
            arrays = (dys, ws, xs.copy()) if which == "dx" else (xs, dys, ws.copy())
            backward = torch.ops.aten.convolution_backward
            theirs = lambda: backward(dy, x, w, None, *given, False, [0, 0], spec.groups, mask)
        ins = address(*arrays)
        return (lambda: program(*ins) or arrays), theirs

    return Case(f"conv {label} {layout} {which}", spec.flops, make)


def conv_cases() -> Iterator[Case]:
    for label, spec in CONVS.items():
        for layout in ("NCHW", "NHWC"):
            for which in ("fwd", "dx", "dw"):
                if which != "dx" or spec.c > 3:
                    yield conv_case(label, spec, layout, which)


def pool_cases() -> Iterator[Case]:
    shapes = {"112 64 3/2": (8, 64, 112, 3, 2, 1), "mnist 24 64 2/2": (64, 64, 24, 2, 2, 0)}
    for label, (n, c, h, k, s, p) in shapes.items():
        out = (h + 2 * p - k) // s + 1
        for layout in ("NCHW", "NHWC"):
            for which in ("fwd", "bwd"):

                def make(n=n, c=c, h=h, k=k, s=s, p=p, out=out, layout=layout, which=which):
                    spec = PoolSpec(
                        n, c, h, h, out, out, (k, k), (s, s), (p, p), layout=layout, indices="int32"
                    )
                    x, dy = torch.randn(n, c, h, h), torch.randn(n, c, out, out)
                    xs, dys = physical(x, layout), physical(dy, layout)
                    y, dx, where = dys.copy(), xs.copy(), np.zeros(dys.shape, np.int32)
                    forward = templates.max_pool_forward(spec)
                    forward(*address(xs, y, where))
                    form = torch.channels_last if layout == "NHWC" else torch.contiguous_format
                    x, dy = (t.contiguous(memory_format=form) for t in (x, dy))
                    _, index = F.max_pool2d(x, k, s, p, return_indices=True)
                    if which == "fwd":
                        ins = address(xs, y, where)
                        keep = (xs, y, where)
                        theirs = lambda: F.max_pool2d(x, k, s, p, return_indices=True)
                        return (lambda: forward(*ins) or keep), theirs
                    backward, ins = templates.max_pool_backward(spec), address(dys, where, dx)
                    keep = (dys, where, dx)
                    given = ([k, k], [s, s], [p, p], [1, 1], False)
                    call = torch.ops.aten.max_pool2d_with_indices_backward
                    return (lambda: backward(*ins) or keep), (lambda: call(dy, x, *given, index))

                yield Case(f"pool {label} {layout} {which}", 0, make)


def attention_cases() -> Iterator[Case]:
    shapes = [(16, 4, 128, 64, True), (8, 8, 256, 64, True), (2, 4, 1024, 64, True),
              (8, 8, 197, 64, False)]  # fmt: skip
    for batch, heads, rows, d, causal in shapes:
        for which in ("fwd", "bwd"):

            def make(batch=batch, heads=heads, rows=rows, d=d, causal=causal, which=which):
                spec = AttentionSpec(batch, heads, rows, rows, d, causal=causal)
                q, k, v, do, o, dq, dk, dv = (array(batch, heads, rows, d) for _ in range(8))
                lse = array(batch, heads, rows)
                forward = templates.attention_forward(spec)
                ins = address(q, k, v, o, lse)
                forward(*ins)
                tensors = [torch.from_numpy(a).requires_grad_() for a in (q, k, v)]
                keep = (q, k, v, do, o, dq, dk, dv, lse)
                call = F.scaled_dot_product_attention
                if which == "fwd":

                    def theirs() -> object:
                        with torch.no_grad():
                            return call(*tensors, is_causal=causal)

                    return (lambda: forward(*ins) or keep), theirs
                program = templates.attention_backward(spec)
                ins = address(q, k, v, o, do, lse, dq, dk, dv)
                result, seed = call(*tensors, is_causal=causal), torch.from_numpy(do)
                grad = torch.autograd.grad
                return (
                    lambda: program(*ins) or keep,
                    lambda: grad(result, tensors, seed, retain_graph=True),
                )

            factor = 1 if which == "fwd" else 2.5
            flops = factor * AttentionSpec(batch, heads, rows, rows, d, causal=causal).flops
            label = f"{batch}x{heads}x{rows}x{d}" + (" causal" if causal else "")
            yield Case(f"attention {label} {which}", flops, make)


def compare(case: Case, rounds: int) -> dict[str, object]:
    """Seconds of both sides and their ratio."""
    start = time.perf_counter()
    ours, theirs = case.make()
    ours()
    first = time.perf_counter() - start
    clock = time.thread_time if pool.get_num_threads() == 1 else time.perf_counter
    mine, other = minima([ours, theirs], rounds, clock=clock)
    return {
        "name": case.name, "ours_us": mine * 1e6, "torch_us": other * 1e6, "ratio": other / mine,
        "gflops": case.flops / mine / 1e9, "first_s": first,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="")
    parser.add_argument("--threads", type=int, default=pool.get_num_threads())
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--json")
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    pool.set_num_threads(chosen.threads)
    rows = []
    for family in (gemm_cases, bfloat_cases, conv_cases, pool_cases, attention_cases):
        for case in family():
            if not re.search(chosen.only, case.name):
                continue
            row = compare(case, chosen.rounds)
            rows.append(row)
            print(
                f"{row['name']:38} ours {row['ours_us']:10.1f} us  torch {row['torch_us']:10.1f} us"
                f"  ratio {row['ratio']:6.2f}  {row['gflops']:7.0f} GFLOP/s",
                flush=True,
            )
    ratios = [float(r["ratio"]) for r in rows]
    if ratios:
        mean, lowest = geometric_mean(ratios), min(ratios)
        print(f"geometric mean {mean:.2f} of {len(ratios)}, lowest {lowest:.2f}")
    if chosen.json:
        with open(chosen.json, "w") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
