"""Every primitive under vmap gives what a loop over the slices gives, and so does its gradient."""

import importlib
import itertools
import pkgutil

import numpy as np
import pytest

import flambeau as fb
from flambeau import ops
from flambeau.ops.registry import REGISTRY

for _module in pkgutil.iter_modules(ops.__path__):
    importlib.import_module(f"flambeau.ops.{_module.name}")
COUNT = 3
# Their results depend on the memory that is not written, on random draws, or on nothing at all.
EXCLUDED = {name for name, op in REGISTRY.items() if op.kind == "random" or not op.operands}


def samples(name):
    """(slices of every operand, parameters): the same sample drawn from several seeds."""
    op = REGISTRY[name]
    draws = [list(op.samples(np.random.default_rng(seed))) for seed in range(COUNT)]
    for cases in zip(*draws, strict=False):
        operands = list(zip(*(map(array, case[0]) for case in cases), strict=True))
        if all(shapes_agree(column) for column in operands):
            yield operands, cases[0][1]


def array(x):
    return np.asarray(x) if isinstance(x, np.generic) else x


def shapes_agree(column):
    return len({np.shape(x) for x in column}) == 1


def patterns(operands):
    """Which operands are mapped: all, and each alone; numbers never are."""
    arrays = [i for i, column in enumerate(operands) if isinstance(column[0], np.ndarray)]
    chosen = [arrays, *([i] for i in arrays)] if len(arrays) > 1 else [arrays]
    return [c for c in chosen if c]


def tensor(array):
    return fb.from_numpy(np.array(array, order="C"))


def prepared(operands, mapped):
    """Arguments for vmap and, per slice, for the plain call."""
    whole, in_dims = [], []
    for i, column in enumerate(operands):
        if i in mapped:
            whole.append(tensor(np.stack(column)))
            in_dims.append(0)
        else:
            x = column[0]
            whole.append(tensor(x) if isinstance(x, np.ndarray) else x)
            in_dims.append(None)
    rows = [
        [x[k] if dim == 0 else x for x, dim in zip(whole, in_dims, strict=True)]
        for k in range(COUNT)
    ]
    return whole, tuple(in_dims), rows


def as_tuple(x):
    return x if isinstance(x, tuple) else (x,)


def assert_equal(name, got, expected):
    got, expected = got.detach(), expected.detach()
    assert got.dtype is expected.dtype
    assert got.shape == expected.shape
    np.testing.assert_allclose(
        got.numpy(), expected.numpy(), rtol=1e-9, atol=1e-12, equal_nan=True, err_msg=name
    )


NAMES = sorted(set(REGISTRY) - EXCLUDED)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore")
def test_values(name):
    op = REGISTRY[name]
    for operands, params in samples(name):
        for mapped in patterns(operands)[: 1 if "remade" in op.info else None]:
            whole, in_dims, rows = prepared(operands, mapped)
            results = [as_tuple(op(*row, **params)) for row in rows]
            got = as_tuple(fb.vmap(lambda *xs: op(*xs, **params), in_dims)(*whole))  # noqa: B023
            for part, column in zip(got, zip(*results, strict=True), strict=True):
                assert_equal(f"{name} {mapped}", part, fb.stack(column))


def differentiable(op, operands):
    return [
        i
        for i, column in enumerate(operands)
        if isinstance(column[0], np.ndarray) and column[0].dtype.kind == "f"
    ]


@pytest.mark.parametrize("name", [n for n in NAMES if REGISTRY[n].vjp is not None])
@pytest.mark.filterwarnings("ignore")
def test_gradients_per_sample(name):
    op = REGISTRY[name]
    for operands, params in itertools.islice(samples(name), 4):
        argnums = tuple(differentiable(op, operands))
        if not argnums:
            continue

        def scalar(*xs):
            outs = as_tuple(op(*xs, **params))  # noqa: B023
            total = sum(
                (out * out.new_ones(()) * 0.7).sum() for out in outs if out.is_floating_point()
            )
            return total if isinstance(total, fb.Tensor) else xs[argnums[0]].sum() * 0  # noqa: B023

        for mapped in patterns(operands):
            whole, in_dims, rows = prepared(operands, mapped)
            expected = [fb.func.grad(scalar, argnums)(*row) for row in rows]
            got = fb.vmap(fb.func.grad(scalar, argnums), in_dims)(*whole)
            for part, column in zip(got, zip(*expected, strict=True), strict=True):
                assert_equal(f"{name} {mapped}", part, fb.stack(column))
