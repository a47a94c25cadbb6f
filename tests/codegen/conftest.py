"""Compile nests, run them on arrays of any layout, and compare with the interpreter."""

import numpy as np
import pytest

from flambeau.codegen.kernel import compile_kernel
from flambeau.core import dtype as dtypes
from flambeau.loops.interpret import interpret
from flambeau.loops.nest import Nest
from flambeau.loops.verify import verify
from flambeau.schedule.liveness import reads

TOLERANCE = {"float64": 1e-12, "float32": 3e-6, "float16": 2e-3, "bfloat16": 2e-2}


def buffers(nests):
    found = {}
    for n in nests:
        for b in (*reads(n), *[s.buf for s in n.stores]):
            found.setdefault(b.name, b)
    return found


def array_for(buf, rng, **numbers):
    """Memory for a buffer, filled with small values, as a view with its strides."""
    d = buf.dtype
    shape = [n if isinstance(n, int) else numbers[n.attr[0]] for n in buf.shape]
    strides = [s if isinstance(s, int) else None for s in buf.strides]
    if None in strides:
        strides = [int(np.prod(shape[k + 1 :])) for k in range(len(shape))]
    length = 1 + sum((n - 1) * s for n, s in zip(shape, strides)) if all(shape) else 1
    if d.category == dtypes.BOOL:
        memory = rng.random(length) < 0.5
    elif d.category == dtypes.INTEGER:
        memory = rng.integers(-7 if d.is_signed else 0, 8, length).astype(d.numpy)
    else:
        memory = rng.uniform(-2, 2, length).astype(d.numpy)
    return np.lib.stride_tricks.as_strided(memory, shape, [s * d.itemsize for s in strides])


def same(got, wanted, d, scale=1.0):
    """Equal, for floats up to rounding relative to the largest value."""
    if d.category != dtypes.FLOAT:
        np.testing.assert_array_equal(got, wanted)
        return
    got, wanted = np.asarray(got, np.float64), np.asarray(wanted, np.float64)
    finite = wanted[np.isfinite(wanted)]
    size = max(1.0, float(np.abs(finite).max())) if finite.size else 1.0
    np.testing.assert_allclose(got, wanted, rtol=0, atol=TOLERANCE[d.name] * size * scale)


@pytest.fixture
def agree():
    """agree(nests, given={}, scale=1, **numbers): compile, run, compare; the kernel."""

    def check(nests, given=None, scale=1.0, target=None, parameters=None, **numbers):
        nests = [nests] if isinstance(nests, Nest) else list(nests)
        verify(nests)
        kernel = compile_kernel(nests, target=target, parameters=parameters)
        rng = np.random.default_rng(7)
        named = buffers(nests)
        arrays = {name: array_for(named[name], rng, **numbers) for name in kernel.parameters}
        for name, value in (given or {}).items():
            arrays[name][...] = value
        wanted = interpret(nests, {n: a.copy() for n, a in arrays.items()}, **numbers)
        kernel.entry(
            *[arrays[n].ctypes.data for n in kernel.parameters],
            *[numbers[n] for n in kernel.numbers],
        )
        for name, array in arrays.items():
            same(array, wanted[name], named[name].dtype, scale)
        return kernel

    return check
