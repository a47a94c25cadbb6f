"""Graphs print, parse back, are checked, and run as eager execution does."""

import pytest

import flambeau as torch
from flambeau.autograd.views import bump
from flambeau.core.spec import spec
from flambeau.graph import Equation, Graph, GraphError, Value, parse, run, verify
from flambeau.graph.passes import without_aliases, without_dead_code, without_final_copies
from flambeau.ops.registry import REGISTRY
from flambeau.tensor.tensor import alias

TEXT = """\
inputs %0: float32[2, 3], %1: float32[3]
%2: float32[2, 3] = mul(%0, 2.0)
%3: float32[3, 2][1, 3] = permute(%2, dims=(1, 0))
%4: float32[2, 3] = add(%2, %1)
%4 <- add(%4, 1)
%1 <- mul(%1, 0.5)
outputs %4, %3
"""


def test_text_round_trip():
    graph = parse(TEXT)
    verify(graph)
    assert str(graph) == TEXT
    assert str(parse(str(graph))) == TEXT


def test_run_writes_inputs_and_shares_views():
    x, y = torch.arange(6.0).view(2, 3).clone(), torch.ones(3)
    out, view = run(parse(TEXT), (x, y), alias, bump)
    assert out.tolist() == [[2, 4, 6], [8, 10, 12]]
    assert view.tolist() == [[0, 6], [2, 8], [4, 10]]
    assert y.tolist() == [0.5] * 3 and y._version == 1


def test_an_equation_cannot_be_changed():
    equation = parse(TEXT).equations[0]
    with pytest.raises(AttributeError, match="immutable"):
        equation.op = "alias"


def test_verifier_finds_a_use_before_its_definition():
    graph = parse(TEXT)
    with pytest.raises(GraphError, match="defined before"):
        verify(graph.replaced(equations=graph.equations[1:]))


def test_verifier_finds_a_wrong_spec():
    x = Value(spec(torch.float32, (2,)))
    wrong = Value(spec(torch.float32, (3,)))
    equation = Equation(REGISTRY["mul"], (x, 2.0), {}, (wrong,))
    with pytest.raises(GraphError, match="the op gives"):
        verify(Graph([x], [equation], [wrong]))


def test_dead_code_keeps_writes_to_inputs_only():
    graph = without_dead_code(parse(TEXT).replaced(outputs=()))
    assert [e.name for e in graph.equations] == ["mul"]
    assert graph.equations[0].target is graph.inputs[1]


def test_aliases_and_final_copies_disappear():
    text = (
        "inputs %0: float32[2]\n"
        "%1: float32[2] = mul(%0, 2.0)\n"
        "%2: float32[2] = alias(%1)\n"
        "%3: float32[2] = copy(%2)\n"
        "outputs %3\n"
    )
    graph = without_final_copies(without_aliases(parse(text)))
    assert [e.name for e in graph.equations] == ["mul"]
    assert graph.outputs == graph.equations[0].outputs


def test_a_copy_of_something_used_again_stays():
    text = (
        "inputs %0: float32[2]\n"
        "%1: float32[2] = mul(%0, 2.0)\n"
        "%2: float32[2] = copy(%1)\n"
        "%1 <- add(%1, 1)\n"
        "outputs %1, %2\n"
    )
    assert len(without_final_copies(parse(text)).equations) == 3
