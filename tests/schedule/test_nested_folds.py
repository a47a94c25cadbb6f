"""A fold whose steps need another fold: right, and not computed anew for every step."""

import numpy as np
import pytest

from flambeau.codegen.kernel import compile_kernel
from flambeau.loops.api import Buf, nest, reduce

SIZES = [(4, 8, 32), (3, 5, 7), (2, 16, 64)]


def filled(*shape):
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def run(nests, inputs: dict, outputs: dict):
    kernel = compile_kernel(nests, parameters=[*inputs, *outputs])
    arrays = [*inputs.values(), *outputs.values()]
    kernel.entry(*(a.ctypes.data for a in arrays))


@pytest.mark.parametrize("sizes", SIZES)
def test_a_row_fold_summed_over_another_dimension(sizes):
    """As in layer norm's backward, whose result is summed over the batch."""
    b, t, c = sizes
    x, y = Buf("x", sizes), Buf("y", sizes)
    centred, total, out = Buf("centred", sizes), Buf("total", sizes), Buf("out", (t, c))
    nests = (
        nest(
            sizes,
            lambda i: x[i] - reduce("add", (c,), lambda r: x[i[0], i[1], r[0]]) / float(c),
            out=centred,
        ),
        nest(sizes, lambda i: y[i] + centred[i], out=total),
        nest((t, c), lambda i: reduce("add", (b,), lambda r: total[(r[0], *i)]), out=out),
    )
    a, d = filled(*sizes), filled(*sizes)[::-1].copy()
    got = np.full((t, c), np.nan, np.float32)
    run(nests, dict(x=a, y=d), dict(out=got))
    np.testing.assert_allclose(got, (a - a.mean(-1, keepdims=True) + d).sum(0), atol=1e-4)


@pytest.mark.parametrize("sizes", SIZES)
def test_a_fold_written_inside_of_a_fold(sizes):
    b, t, c = sizes
    x, y, out = Buf("x", sizes), Buf("y", sizes), Buf("out", (t, c))

    def body(i):
        return reduce(
            "add",
            (b,),
            lambda r: y[(r[0], *i)] + reduce("add", (c,), lambda q: x[r[0], i[0], q[0]]),
        )

    a, d = filled(*sizes), filled(*sizes)[::-1].copy()
    got = np.full((t, c), np.nan, np.float32)
    run(nest((t, c), body, out=out), dict(x=a, y=d), dict(out=got))
    np.testing.assert_allclose(got, (d + a.sum(-1, keepdims=True)).sum(0), atol=1e-4)
