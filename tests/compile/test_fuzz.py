"""Generated programs that mix control flow, mutation and tensor work: compiled equals plain."""

import textwrap

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import flambeau as torch
from flambeau.compile import config
from tests.compile.test_programs import plain

NAMES = ("a", "b", "c")
STATEMENTS = (
    "{0} = {1} + {2}",
    "{0} = {1} * {n}",
    "{0} = {1}.clone(); {0}[{i}] = {2}.sum()",
    "{0} = ({1} - {2}).relu()",
    "{0} = {1}.view(-1) if {n} > 1 else {2}.t().reshape(-1); {0} = {0}.view(2, 2)",
    "state['n'] += {n}",
    "state['log'].append({n})",
    "state['t'] = {1} * state['n']",
    "{0}.add_({2})",
    "{0} = {1}; {0} *= {n}",
    "box.value = {1} + {n}; {0} = box.value",
    "{0} = sum([{1}, {2}])",
    "{0} = max([{1}, {2}], key=lambda t: t.shape[0] + {n})",
    "{0}, {1} = {1}, {0}",
    "{0} = f'{{state[\"n\"]}}' and {1}",
    "try:\n    {0} = {1} / ({n} - 1 and 1)\n    [][{n} - 2]\n"
    "except IndexError:\n    state['log'].append('e')",
    "{0} = [t * k for k, t in enumerate(({1}, {2}))][{i}]",
    "effect({n})",
    "{0} = torch.where({1} > {2}, {1}, {2})",
    "{0} = helper({1}, {2}, scale={n})",
    "if {1}.sum() > {n}:\n    {0} = {2} * 2\nelse:\n    state['log'].append('cold')",
    "del {0}; {0} = {1} + 0",
)
BLOCKS = (
    "for _ in range({n}):\n{body}",
    "if {n} % 2:\n{body}\nelse:\n{other}",
    "with torch.no_grad():\n{body}",
    "for item in [{n}, {i}]:\n    state['n'] += item\n{body}",
    "try:\n{body}\nfinally:\n    state['n'] += 1",
    "while state['n'] % 5:\n    state['n'] += 1\n{body}",
)
statement = st.builds(
    lambda text, names, n, i: text.format(*names, n=n, i=i),
    st.sampled_from(STATEMENTS),
    st.tuples(*[st.sampled_from(NAMES)] * 3),
    st.integers(0, 3),
    st.integers(0, 1),
)


def block(body):
    lines = st.lists(body, min_size=1, max_size=3).map("\n".join)
    return st.builds(
        lambda text, n, i, one, two: text.format(
            n=n, i=i, body=textwrap.indent(one, "    "), other=textwrap.indent(two, "    ")
        ),
        st.sampled_from(BLOCKS),
        st.integers(0, 3),
        st.integers(0, 1),
        lines,
        lines,
    )


programs = st.lists(st.recursive(statement, block, max_leaves=4), min_size=2, max_size=6)


class Box:
    value = None


def helper(x, y, *, scale=1):
    if scale > 1:
        return x * scale
    return x - y


def outcome(text, compiled):
    log = []
    state = {"n": 1, "log": [], "t": None}
    box = Box()
    space = {"torch": torch, "state": state, "box": box, "effect": log.append, "helper": helper}
    exec(compile(text, "<generated>", "exec"), space)
    function = torch.compile(space["f"]) if compiled else space["f"]
    results = []
    for k in range(3):
        args = [torch.arange(4.0).view(2, 2) - j + k for j in range(3)]
        try:
            results.append(("ok", plain(function(*args))))
        except Exception as error:
            results.append(("raised", type(error).__name__))
        results += [plain(args), plain(state), plain(box.value), list(log)]
    return results


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(programs)
def test_generated_programs(statements):
    body = textwrap.indent("\n".join(statements), "    ")
    text = f"def f(a, b, c):\n{body}\n    return a, b, c\n"
    before, config.raise_internal_errors = config.raise_internal_errors, True
    try:
        assert outcome(text, True) == outcome(text, False), text
    finally:
        config.raise_internal_errors = before
