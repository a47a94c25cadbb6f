"""The contract of every primitive, from its own definition: `meta` predicts what `ref` gives, and
gradients agree with central differences, once and twice."""

import importlib
import pkgutil
import zlib

import numpy as np
import pytest

import flambeau
import flambeau.ops
from flambeau.core.dtype import FLOAT, from_numpy_dtype
from flambeau.core.spec import WEAK, Spec, spec
from flambeau.eager.native.nests import nests_of
from flambeau.loops.interpret import interpret
from flambeau.ops.elementwise import compute_dtype
from flambeau.ops.registry import REGISTRY
from flambeau.tensor.tensor import from_array

for _module in pkgutil.walk_packages(flambeau.ops.__path__, "flambeau.ops."):
    importlib.import_module(_module.name)  # some load on first use

STEP = 1e-5
PRIMITIVES = sorted(REGISTRY)


def samples(primitive) -> list[tuple[tuple, dict]]:
    """Fresh operands and parameters, the same in every run."""
    rng = np.random.default_rng(zlib.crc32(primitive.name.encode()))
    made = []
    for operands, params in primitive.samples(rng):
        operands = tuple(np.array(x) if isinstance(x, (np.ndarray, np.generic)) else x
                         for x in operands)
        made.append((operands, params))
    return made


def spec_of(operand) -> Spec | None:
    if operand is None:
        return None
    if isinstance(operand, np.ndarray):
        return spec(from_numpy_dtype(operand.dtype), operand.shape)
    return WEAK[type(operand)]


def as_computed(primitive, operands: tuple) -> tuple:
    """Operands as the eager executor hands them to `ref`."""
    if primitive.kind != "pointwise":
        return operands
    specs = tuple(spec_of(x) for x in operands if x is not None)
    kind = compute_dtype(primitive, specs).numpy
    return tuple(x.astype(kind) if isinstance(x, np.ndarray) else x for x in operands)


def several(result) -> tuple:
    return result if isinstance(result, tuple) else (result,)


@pytest.mark.parametrize("name", PRIMITIVES)
def test_meta_predicts_what_ref_gives(name):
    primitive = REGISTRY[name]
    cases = samples(primitive)
    assert cases, f"{name} needs samples"
    for operands, params in cases:
        predicted = primitive.meta(*(spec_of(x) for x in operands), **params)
        if primitive.kind == "view":
            of, offset = predicted
            out = primitive(from_array(operands[0]), **params)
            assert out.shape == of.shape and out.storage_offset() == offset
            continue
        if primitive.kind == "random":
            continue
        with np.errstate(all="ignore"):
            got = several(primitive.ref(*as_computed(primitive, operands), **params))
        for s, array in zip(several(predicted), got, strict=True):
            array = np.asarray(array)
            assert array.shape == tuple(s.shape), (operands, params)
            assert array.dtype == s.numpy, (operands, params)


def lowered(primitive, operands, params):
    """(nests, results) of one sample, or None."""
    specs = [spec_of(x) for x in operands]
    results = several(primitive.meta(*specs, **params))
    if not results[0].numel or any(s is not None and not s.numel for s in specs):
        return None
    found = nests_of(primitive, specs, params, results)
    return None if found is None else (found, results)


def as_read(primitive, x: np.ndarray, result: Spec) -> np.ndarray:
    """Operands of pointwise nests are expanded, those of others broadcast themselves."""
    return np.broadcast_to(x, result.shape) if primitive.kind == "pointwise" else x


@pytest.mark.parametrize("name", [n for n in PRIMITIVES if REGISTRY[n].kind not in (
    "view", "random")])
def test_loop_nests_compute_what_ref_gives(name):
    primitive = REGISTRY[name]
    for operands, params in samples(primitive):
        made = lowered(primitive, operands, params)
        if made is None:
            continue
        nests, results = made
        with np.errstate(all="ignore"):
            wanted = several(primitive.ref(*as_computed(primitive, operands), **params))
            arrays = {f"x{k}": as_read(primitive, x, results[0])
                      for k, x in enumerate(operands) if isinstance(x, np.ndarray)}
            numbers = {f"x{k}": x for k, x in enumerate(operands)
                       if isinstance(x, (bool, int, float))}
            got = interpret(nests, arrays, **numbers)
        for k, array in enumerate(wanted):
            np.testing.assert_allclose(got[f"out{k}"].reshape(np.shape(array)), array,
                                       rtol=1e-10, atol=1e-12, err_msg=str((operands, params)))


def has_derivative(x) -> bool:
    return isinstance(x, np.ndarray) and x.dtype.kind in "fc"


@pytest.mark.parametrize("name", PRIMITIVES)
def test_floats_have_gradients_or_a_reason(name):
    primitive = REGISTRY[name]
    if primitive.differentiable or primitive.kind == "random":
        return
    operands, params = samples(primitive)[0]
    outs = several(primitive.meta(*(spec_of(x) for x in operands), **params))
    if any(has_derivative(x) for x in operands) and any(
            isinstance(s, Spec) and s.dtype.category >= FLOAT for s in outs):
        assert primitive.info.get("no_gradient"), f"{name} needs a gradient, or no_gradient=why"


# Gradients -----------------------------------------------------------------------------------


class Case:
    """A sum of randomly weighted outputs, as a function of the operands that have gradients."""

    def __init__(self, primitive, operands, params):
        self.primitive, self.operands, self.params = primitive, operands, params
        self.rng = np.random.default_rng(0)
        rules = primitive.vjp
        self.at = [i for i, x in enumerate(operands) if has_derivative(x) and (
            callable(rules) or rules == "decompose" or
            primitive.operands[min(i, len(primitive.operands) - 1)] in rules)]
        self.cotangents = None

    def outputs(self, values) -> list:
        args = list(self.operands)
        for i, x in zip(self.at, values):
            args[i] = x
        remade = self.primitive.info.get("remade")
        if remade and not any(isinstance(x, flambeau.Tensor) for x in args):
            args = remade(*args, **self.params)  # what a forward pass gave follows its operands
        args = [from_array(x) if isinstance(x, np.ndarray) else x for x in args]
        outs = [o for o in several(self.primitive(*args, **self.params))
                if o.dtype.category >= FLOAT]
        if self.cotangents is None:
            self.cotangents = [random_like(self.rng, o.detach().numpy()) for o in outs]
        return outs

    def leaves(self, values) -> list:
        return [from_array(np.array(x)).requires_grad_() for x in values]

    def direction(self, values, grads) -> list:
        """Random, and zero for operands that a joint rule holds constant (weights of a loss)."""
        joint = not isinstance(self.primitive.vjp, dict)
        tangents = self.primitive.info.get("tangents")
        if tangents:  # one triangle is read
            return [self.within(tangents, self.primitive.operands[i], random_like(self.rng, x))
                    for i, x in zip(self.at, values)]
        return [np.zeros_like(x) if joint and g is None else random_like(self.rng, x)
                for x, g in zip(values, grads)]

    def within(self, tangents, name, direction):
        project = tangents.get(name)
        if project is None:
            return direction
        return project(direction, **self.params) if project.__code__.co_argcount > 1 else (
            project(direction))

    def loss(self, values) -> float:
        outs = self.outputs(values)
        return sum(inner(c, o.detach().numpy()) for c, o in zip(self.cotangents, outs))

    def gradients(self, values, create_graph=False) -> tuple[list, list]:
        leaves = self.leaves(values)
        outs = self.outputs(leaves)
        pairs = [(o, from_array(np.array(c))) for o, c in zip(outs, self.cotangents)
                 if o.requires_grad]
        if not pairs:
            return leaves, [None] * len(leaves)
        found = flambeau.autograd.grad([o for o, _ in pairs], leaves, [c for _, c in pairs],
                                       create_graph=create_graph, allow_unused=True)
        return leaves, list(found)


def random_like(rng, x: np.ndarray) -> np.ndarray:
    w = rng.uniform(0.5, 1.5, x.shape)
    return w + 1j * rng.uniform(0.5, 1.5, x.shape) if x.dtype.kind == "c" else w


def inner(a, b) -> float:
    """Re <a, b>: what PyTorch's complex gradients are the gradient of."""
    return float(np.sum(np.conj(a) * b).real)


def slope(f, values: list, direction: list) -> float:
    """The derivative of f along a direction."""
    ahead, behind = ([np.asarray(x + s * STEP * d) for x, d in zip(values, direction)]
                     for s in (1, -1))
    return (f(ahead) - f(behind)) / (2 * STEP)


def arrays(grads, values) -> list[np.ndarray]:
    return [np.zeros_like(x) if g is None else np.asarray(g.detach().numpy())
            for g, x in zip(grads, values)]


def gradient_cases():
    return [n for n in PRIMITIVES if REGISTRY[n].differentiable and REGISTRY[n].kind != "random"]


@pytest.mark.parametrize("name", gradient_cases())
def test_gradient_agrees_with_central_differences(name):
    primitive = REGISTRY[name]
    for operands, params in samples(primitive):
        case = Case(primitive, operands, params)
        values = [operands[i] for i in case.at]
        _, grads = case.gradients(values)
        found = arrays(grads, values)
        for _ in range(2):
            direction = case.direction(values, grads)
            expected = slope(case.loss, values, direction)
            got = sum(inner(g, d) for g, d in zip(found, direction))
            assert got == pytest.approx(expected, rel=1e-5, abs=1e-6), (operands, params)


@pytest.mark.parametrize("name", gradient_cases())
def test_gradient_differentiates_again(name):
    primitive = REGISTRY[name]
    for operands, params in samples(primitive):
        case = Case(primitive, operands, params)
        values = [operands[i] for i in case.at]
        leaves, grads = case.gradients(values, create_graph=True)
        weights = [random_like(case.rng, x) for x in values]
        pairs = [(g, w) for g, w in zip(grads, weights) if g is not None and g.requires_grad]

        def weighted(at, case=case, weights=weights):
            _, grads = case.gradients(at)
            return sum(inner(w, g) for w, g in zip(weights, arrays(grads, at)))

        found = [None] * len(leaves)
        if pairs:
            found = flambeau.autograd.grad(
                [g for g, _ in pairs], leaves, [from_array(np.array(w)) for _, w in pairs],
                allow_unused=True)
        direction = case.direction(values, grads)
        got = sum(inner(g, d) for g, d in zip(arrays(found, values), direction))
        assert got == pytest.approx(slope(weighted, values, direction), rel=1e-4, abs=1e-5), (
            operands, params)
