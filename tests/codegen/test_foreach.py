"""One kernel over many tensors."""

import numpy as np
import pytest

from flambeau.codegen.kernel import compile_foreach
from flambeau.core.errors import OpError
from flambeau.loops.api import Buf, Scalar, nest, reduce, size, unary

N = size("n", 1)
P, G, M = (Buf(name, (N,)) for name in "pgm")


def update(i):
    lr, beta = Scalar("lr", "float32"), Scalar("beta", "float32")
    moment = M[i] * beta + G[i]
    return P[i] - lr * moment / (unary("sqrt", moment * moment) + 1.0), moment


@pytest.mark.parametrize("sizes", [[1], [5, 17, 100_003, 64], [33] * 50, []])
def test_every_tensor_is_updated(sizes):
    kernel = compile_foreach(nest((N,), update, out=(P, M)))
    assert kernel.parameters == ("p", "m", "g")
    rng = np.random.default_rng(0)
    tensors = [{k: rng.normal(size=n).astype(np.float32) for k in "pgm"} for n in sizes]
    wanted = []
    for t in tensors:
        moment = t["m"] * np.float32(0.9) + t["g"]
        wanted.append((t["p"] - np.float32(0.1) * moment / (np.sqrt(moment * moment) + 1), moment))
    table = np.array(
        [[t[k].ctypes.data for k in kernel.parameters] + [n] for t, n in zip(tensors, sizes)],
        np.int64,
    ).reshape(len(sizes), 4)
    numbers = dict(lr=0.1, beta=0.9)
    kernel.entry(table.ctypes.data, len(sizes), *[numbers[n] for n in kernel.numbers])
    for t, (p, m) in zip(tensors, wanted):
        np.testing.assert_allclose(t["p"], p, rtol=1e-6, atol=1e-6)
        np.testing.assert_array_equal(t["m"], m)


def test_nests_that_are_not_one_loop_are_refused():
    with pytest.raises(OpError, match="foreach: one loop over one runtime size is needed"):
        compile_foreach(nest((4,), lambda i: Buf("x", (4,))[i] + 1.0))
    with pytest.raises(OpError, match="foreach"):
        compile_foreach(nest((), lambda i: reduce("add", (N,), lambda r: P[r])))
