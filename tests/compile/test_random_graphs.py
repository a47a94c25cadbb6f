"""Generated graphs of 3 to 12 operations, over shapes with 0, 1 and odd sizes and any layout, give
the same in eager mode, compiled, and as loop nests in the interpreter."""

from collections.abc import Callable

import numpy as np
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

import flambeau as torch
from flambeau.capture.outputs import alias, bump
from flambeau.eager.native.nests import nests_of
from flambeau.graph.graph import Value
from flambeau.graph.interpret import Plan
from flambeau.loops.interpret import interpret
from flambeau.tensor.tensor import Tensor, from_array

SIZES = st.sampled_from([0, 1, 1, 2, 3, 5, 7, 17, 33, 65])
WIDE_TYPES = ["float32", "float32", "float32", "float64", "int64", "int32", "uint8", "bool"]
NARROW_TYPES = ["bfloat16", "float16", "float32", "int8"]
LAYOUTS = st.sampled_from(["plain", "transposed", "gaps", "expanded"])
# What jumps (comparisons, whole parts) is asked of whole numbers, or far from where it jumps.
ANY = [  # of one tensor {a}, of any dtype
    "{a}.float().tanh()",
    "{a}.double().tanh().exp()",
    "{a} * 2",
    "{a} + 0.5",
    "{a}.float().relu()",
    "{a}.sum()",
    "{a}.float().tanh().mean()",
    "{a}.float().tanh().cumsum(0)",
    "{a}.unsqueeze(0)",
    "{a}.unsqueeze(-1).expand(*{a}.shape, 3)",
    "{a}.reshape(-1)",
    "{a}.clone()",
    "{a}.clamp(0, 1)",
    "{a}.flip(0) if {a}.ndim else {a}",
    "torch.where({a} > 0, {a}, 0)",
    "torch.cat([{a}.reshape(-1), {a}.reshape(-1)])",
    "{a}.float().tanh().logsumexp(-1) if {a}.ndim and {a}.shape[-1] else {a}",
    "{a}.masked_fill({a} < 0, 1)",
    "({a}.float() / 3).sigmoid().log1p()",
    "{a}.roll(1)",
    "{a}.float().abs().sqrt()",
    "{a} if {a}.is_floating_point() else {a}.bitwise_and(1)",
    "{a}.reshape(-1).repeat(2)",
    "({a} > 0).any()",
]
WIDE = [  # of one tensor with dimensions
    "{a}.sum(0)",
    "{a}.float().tanh().sum(-1, keepdim=True)",
    "{a}.float().tanh().var(-1, correction=0)",
    "torch.softmax({a}.float().tanh(), -1)",
    "torch.log_softmax({a}.double().tanh(), 0)",
    "torch.nn.functional.layer_norm({a}.float().tanh(), {a}.shape[-1:], eps=0.1)",
    "{a}.float().amax(-1) if {a}.shape[-1] else {a}.float().sum(-1)",
    "{a}.transpose(0, -1)",
    "{a}[::2]",
    "{a}[..., 1:]",
    "{a}[..., -1] if {a}.shape[-1] else {a}",
    "{a}.narrow(0, 0, {a}.shape[0] // 2)",
    "{a}.float().tanh().sort(-1)[0]",
    "{a}.float().tanh().topk(min(2, {a}.shape[-1]), -1)[0]",
    "{a}.index_select(0, torch.arange({a}.shape[0]).flip(0))",
    "{a}.gather(-1, torch.zeros({a}.shape, dtype=torch.long))",
    "torch.zeros({a}.shape).scatter_add(0, torch.zeros({a}.shape, dtype=torch.long), {a}.float())",
    "{a}.argmax(-1) if {a}.dtype is torch.int64 and {a}.shape[-1] else {a}",
    "{a}.float().tanh().var(0, correction=0)",
    "{a}.float().tanh().cumprod(-1)",
    "torch.nn.functional.pad({a}, (1, 2))",
    "{a}.unfold(-1, 2, 1) if {a}.shape[-1] > 1 else {a}",
    "{a}.tril() if {a}.ndim > 1 else {a}",
    "{a}.diagonal() if {a}.ndim > 1 else {a}",
    "{a}.chunk(2, -1)[0]",
    "torch.stack([{a}, {a} * 2], -1)",
    "{a}.float().norm(dim=-1, keepdim=True)",
    "{a}.repeat_interleave(2, 0)",
    "({a}.float().tanh() @ {a}.float().tanh().transpose(-1, -2)) if {a}.ndim > 1 else {a}",
]
PAIRS = [
    "{a} + {b}",
    "{a} * {b}",
    "torch.maximum({a}, {b})",
    "torch.minimum({a}, {b})",
    "{a}.float().tanh() - {b}.float().tanh()",
    "torch.where({a} > {b}, {a}, {b})",
    "torch.addcmul({a}.float(), {a}.float(), {b}.float().tanh())",
    "torch.lerp({a}.float().tanh(), {b}.float().tanh(), 0.3)",
    "{a}.eq({b}) if not ({a}.is_floating_point() or {b}.is_floating_point()) else {a}",
    "({a}.float().tanh() - {b}.float().tanh()).square().mean()",
    "torch.outer({a}.float().reshape(-1)[:9].tanh(), {b}.float().reshape(-1)[:9].tanh())",
    "torch.bucketize(torch.arange({a}.numel()), torch.arange({b}.numel()))",
]
WRITES = ["{a}.mul_(2)", "{a}.add_(1)", "{a}.copy_({a} + 1)", "{a}.zero_()", "{a}.fill_(2)",
          "{a}.masked_fill_({a} < 0, 1)"]  # fmt: skip
WIDE_WRITES = ["{a}[..., ::2].mul_(3)", "{a}[:1].add_(2)", "{a}.transpose(0, -1).add_(1)",
               "{a}[{a} < 0] = 0", "{a}[-1:] = {a}[:1]", "{a}.select(-1, 0).zero_()"]  # fmt: skip


@st.composite
def inputs(draw, dtypes):
    """(shape, dtype, layout, seed) of one argument."""
    shape = tuple(draw(st.lists(SIZES, max_size=3)))
    return shape, draw(st.sampled_from(dtypes)), draw(LAYOUTS), draw(st.integers(0, 9))


def made(shape, dtype, layout, seed) -> Tensor:
    """The argument: quarters or whole numbers, the same each time."""
    rng = np.random.default_rng(seed)

    def drawn(*shape: int) -> Tensor:
        quarters = torch.tensor(rng.integers(-8, 9, shape) / 4)
        return (quarters * 4).abs().to(kind) if dtype in ("uint8", "bool") else quarters.to(kind)

    kind = getattr(torch, dtype)
    if layout == "transposed":
        return drawn(*shape[::-1]).permute(*range(len(shape))[::-1])
    if layout == "gaps" and shape:
        return drawn(*shape[:-1], 2 * shape[-1])[..., ::2]
    if layout == "expanded":
        return drawn(*shape[1:]).expand(*shape)
    return drawn(*shape)


@st.composite
def programs(draw, dtypes=tuple(WIDE_TYPES)):
    """(source of f, arguments). What cannot run on the tensors that there are is left out."""
    arguments = draw(st.lists(inputs(dtypes), min_size=1, max_size=3))
    names = [f"x{k}" for k in range(len(arguments))]
    lines, space = [], {"torch": torch, **{n: made(*a) for n, a in zip(names, arguments)}}
    for _ in range(draw(st.integers(3, 12))):
        a, b = draw(st.sampled_from(names)), draw(st.sampled_from(names))
        kinds = ANY + PAIRS * 2 + WRITES + (WIDE * 2 + WIDE_WRITES if space[a].ndim else [])
        kind = draw(st.sampled_from(kinds))
        target = "" if kind in WRITES + WIDE_WRITES else f"v{len(lines)}"
        line = (f"{target} = {kind}" if target else kind).format(a=a, b=b)
        try:
            exec(line, space)
        except (RuntimeError, IndexError, TypeError, ValueError):
            continue
        lines.append(line)
        if target:
            names.append(target)
            if space[target].numel() > 40_000:
                break
    returned = f"return {', '.join(names)},"
    body = "".join(f"    {line}\n" for line in [*lines, returned])
    return f"def f({', '.join(names[: len(arguments)])}):\n{body}", arguments


class Nests(Plan):
    """A graph run by the interpreter of loop nests, where an equation has nests."""

    def _step(self, equation, environment):
        if equation.is_view or equation.target is not None or isinstance(equation.op, str):
            return super()._step(equation, environment)
        operands = [environment[v] if isinstance(v, Value) else v for v in equation.inputs]
        specs = [v.spec if isinstance(v, Value) else None for v in equation.inputs]
        results = tuple(v.spec for v in equation.outputs)
        if None in specs or any(s.numel == 0 for s in (*specs, *results)):
            return super()._step(equation, environment)
        found = nests_of(equation.op, specs, equation.params, results)
        if found is None:
            return super()._step(equation, environment)
        shape = results[0].shape
        pointwise = equation.op.kind == "pointwise"
        arrays = {
            f"x{k}": np.broadcast_to(x._array, shape) if pointwise else x._array
            for k, x in enumerate(operands)
        }
        got = interpret(found, arrays)
        for k, v in enumerate(equation.outputs):
            environment[v] = from_array(got[f"out{k}"].reshape(v.spec.shape))


def interpreted(graph, examples):
    return Nests(graph, alias, bump)


def outcome(function, arguments) -> list[np.ndarray] | type:
    values = [made(*a) for a in arguments]
    try:
        results = function(*values)
    except Exception as error:
        return type(error)
    narrow = (torch.bfloat16, torch.float16)
    return [
        np.array((t.float() if t.dtype in narrow else t).detach().numpy())
        for t in (*results, *values)
    ]


def agree(got, wanted, relative: float = 1e-5) -> None:
    if isinstance(wanted, type):
        assert got is wanted
        return
    assert not isinstance(got, type), got
    for g, w in zip(got, wanted, strict=True):
        assert g.shape == w.shape and g.dtype == w.dtype
        size = float(np.abs(w[np.isfinite(w)]).max(initial=1.0)) if w.dtype.kind == "f" else 0
        if w.dtype.kind == "f":
            np.testing.assert_allclose(g, w, rtol=relative, atol=2 * relative * size)
        else:
            np.testing.assert_array_equal(g, w)


def function(source: str) -> Callable:
    space: dict = {"torch": torch}
    exec(compile(source, "<generated>", "exec"), space)
    return space["f"]


BUDGET = dict(
    deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)


@settings(max_examples=60, **BUDGET)
@given(programs())
def test_eager_compiled_and_nests_agree(program):
    source, arguments = program
    note(source)
    f = function(source)
    with torch.no_grad():
        wanted = outcome(f, arguments)
        agree(outcome(torch.compile(f, mode="sync"), arguments), wanted)
        agree(outcome(torch.compile(f, backend=interpreted), arguments), wanted)


@settings(max_examples=30, **BUDGET)
@given(programs(NARROW_TYPES))
def test_narrow_types_agree_to_their_precision(program):
    source, arguments = program
    note(source)
    f = function(source)
    with torch.no_grad():
        agree(outcome(torch.compile(f, mode="sync"), arguments), outcome(f, arguments), 2e-2)


@settings(max_examples=30, **BUDGET)
@given(programs(("float32", "float64", "int64")))
def test_gradients_agree(program):
    source, arguments = program
    note(source)
    f = function(source)

    def gradients(*arguments):
        leaves = [x.detach().clone() for x in arguments]
        for x in leaves:
            x.requires_grad_(x.is_floating_point())
        results = f(*[x.clone() for x in leaves])
        reached = [r for r in results if r.requires_grad]
        if reached:
            sum([r.double().tanh().sum() for r in reached]).backward()
        return [x.grad for x in leaves if x.grad is not None]

    agree(outcome(torch.compile(gradients, mode="sync"), arguments), outcome(gradients, arguments))
