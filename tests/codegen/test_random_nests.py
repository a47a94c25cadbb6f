"""Random programs of nests, random layouts and sizes, against the interpreter."""

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flambeau.codegen.kernel import compile_kernel
from flambeau.core import dtype as dtypes
from flambeau.loops.api import Buf, apply, cast, maximum, minimum, nest, reduce, unary, where
from flambeau.loops.interpret import interpret
from flambeau.loops.parse import parse
from flambeau.loops.text import program_text
from flambeau.loops.verify import verify
from flambeau.schedule.liveness import reads

SIZES = st.sampled_from([0, 1, 1, 2, 3, 5, 8, 16, 17, 33, 64, 70, 130])
FLOATS = ["float32", "float64"]
STEPS = ["add", "sub", "mul", "max", "min", "tanh", "exp", "abs", "where", "number"]


@st.composite
def layouts(draw, shape):
    """Strides of a buffer: dense in some order of dimensions, gaps, or broadcast."""
    order = draw(st.permutations(range(len(shape))))
    gap = draw(st.sampled_from([1, 1, 1, 2]))
    strides, step = [0] * len(shape), gap
    for d in order:
        strides[d] = step
        step *= max(shape[d], 1)
    for d in range(len(shape)):
        if draw(st.integers(0, 7)) == 0:
            strides[d] = 0
    return tuple(strides)


@st.composite
def expressions(draw, leaves, depth=4):
    """A bounded float expression over `leaves`."""
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        return draw(st.sampled_from(leaves))
    step = draw(st.sampled_from(STEPS))
    x = draw(expressions(leaves, depth - 1))
    if step in ("tanh", "abs"):
        return unary(step, x)
    if step == "exp":
        return unary("exp", minimum(maximum(x, -3.0), 1.0))
    if step == "number":
        return x * draw(st.sampled_from([0.5, -1.0, 0.25])) + 1.0
    y = draw(expressions(leaves, depth - 1))
    if step == "where":
        return where(x < y, x, y * 0.5)
    return apply(step, x, y)


@st.composite
def programs(draw):
    """Two or three nests; later ones read earlier results, at their own point or once a row."""
    rank = draw(st.integers(0, 3))
    shape = tuple(draw(SIZES) for _ in range(rank))
    kind = draw(st.sampled_from(FLOATS))
    inputs = [
        Buf(f"x{k}", shape, draw(layouts(shape)), kind) for k in range(draw(st.integers(1, 3)))
    ]
    nests, pointwise, folded = [], list(inputs), []
    for k in range(draw(st.integers(1, 4))):
        made, kept = draw(results(f"t{k}", shape, pointwise, folded))
        nests.append(made)
        if len(kept) == rank:
            pointwise.append(made.out)
        else:
            folded.append((made.out, kept))
    return nests


@st.composite
def results(draw, name, shape, pointwise, folded):
    """(a nest, the dimensions it keeps): elementwise, or a fold over some of the dimensions."""

    def value(i):
        leaves = [b[i] for b in pointwise]
        leaves += [b[tuple(i[d] for d in kept)] for b, kept in folded]
        return draw(expressions(leaves))

    dims = range(len(shape))
    gone = draw(st.sets(st.sampled_from(dims))) if shape and draw(st.booleans()) else set()
    kept = tuple(d for d in dims if d not in gone)
    if not gone:
        return nest(shape, value, out=name), kept
    combine = draw(st.sampled_from(["add", "max", "min"]))
    sizes = tuple(shape[d] for d in sorted(gone))

    def body(i):
        def at(r):
            outer, inner = iter(i), iter(r)
            return tuple(next(inner) if d in gone else next(outer) for d in dims)

        return reduce(combine, sizes, lambda r: value(at(r)))

    return nest(tuple(shape[d] for d in kept), body, out=name), kept


def array_for(buf, rng):
    length = 1 + sum((n - 1) * s for n, s in zip(buf.shape, buf.strides)) if all(buf.shape) else 1
    memory = rng.uniform(-1, 1, length).astype(buf.dtype.numpy)
    return np.lib.stride_tricks.as_strided(
        memory, buf.shape, [s * buf.dtype.itemsize for s in buf.strides]
    )


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(programs(), st.sets(st.integers(0, 3)))
def test_random_programs_agree_with_the_interpreter(nests, wanted):
    verify(nests)
    assert parse(program_text(nests)) == nests
    named = {b.name: b for n in nests for b in (*reads(n), n.out)}
    outside = tuple(name for name in named if name[0] == "x")
    outside += tuple({f"t{k}" for k in wanted if f"t{k}" in named} | {nests[-1].out.name})
    kernel = compile_kernel(nests, parameters=outside)
    rng = np.random.default_rng(0)
    arrays = {name: array_for(named[name], rng) for name in outside}
    reference = interpret(nests, {n: a.copy() for n, a in arrays.items()})
    kernel.entry(*[arrays[n].ctypes.data for n in outside])
    for name in outside:
        wide = dtypes.float64 if named[name].dtype is dtypes.float64 else dtypes.float32
        scale = max(1.0, float(np.abs(reference[name]).max(initial=0.0)))
        limit = (1e-11 if wide is dtypes.float64 else 2e-4) * scale
        np.testing.assert_allclose(arrays[name], reference[name], rtol=0, atol=limit)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(
    st.sampled_from(["int8", "int32", "int64", "uint8"]),
    st.lists(
        st.sampled_from(["add", "sub", "mul", "max", "min", "floordiv", "mod", "xor"]),
        min_size=1,
        max_size=5,
    ),
    SIZES,
)
def test_random_integer_chains_wrap_alike(name, steps, n):
    x, y = Buf("x", (n,), None, name), Buf("y", (n,), None, name)

    def body(i):
        value = x[i]
        for step in steps:
            value = apply(step, value, y[i])
        return cast(value, "int64")

    kernel = compile_kernel(nest((n,), body))
    rng = np.random.default_rng(1)
    limits = np.iinfo(x.dtype.numpy)
    arrays = {
        k: rng.integers(limits.min, limits.max, n, x.dtype.numpy, endpoint=True) for k in "xy"
    }
    arrays["out"] = np.zeros(n, np.int64)
    reference = interpret(nest((n,), body), arrays)["out"]
    kernel.entry(*[arrays[p].ctypes.data for p in kernel.parameters])
    np.testing.assert_array_equal(arrays["out"], reference)
