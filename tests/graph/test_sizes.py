"""A graph captured with symbolic sizes, made for given ones."""

import pytest

import flambeau as torch
from flambeau.compile.native import native_runner
from flambeau.graph.sizes import Unsized, closed, deciding
from flambeau.graph.verify import verify


def captured(function, *calls):
    """The last graph of a function that is called with each of the arguments."""
    graphs = []

    def keep(graph, examples):
        graphs.append(graph)
        return native_runner(graph, examples)

    compiled = torch.compile(function, backend=keep)
    for args in calls:
        compiled(*args)
    return graphs[-1]


def scaled(x, rate):
    flat = (x * rate).reshape(-1)
    return (flat + torch.ones(x.shape[0] * 3)).sum() / x.shape[0]


@pytest.fixture
def graph():
    return captured(scaled, (torch.ones(5, 3), 0.5), (torch.ones(6, 3), 0.25))


@pytest.mark.parametrize("n", [0, 1, 2, 9])
def test_every_spec_follows_from_the_inputs(graph, n):
    size = next(k for k in deciding(graph) if graph.inputs[k].spec.weak)
    given = [torch.ones(n, 3)._spec, *([0.125] * (len(graph.inputs) - 1))]
    given[size] = n
    made = closed(graph, given)
    verify(made)
    assert not any(e.open_params for e in made.equations)
    assert all(type(k) is int for e in made.equations for v in e.outputs for k in v.spec.shape)
    assert not any(v is made.inputs[size] for e in made.equations for v in e.uses())


def test_rates_decide_nothing(graph):
    floats = [k for k, v in enumerate(graph.inputs) if v.spec.weak and v.spec.dtype.category == 2]
    assert len(floats) == 1 and floats[0] not in deciding(graph)


def test_sizes_that_tensors_hold_are_refused(graph):
    (view,) = [e for e in graph.equations if e.name == "view"]
    (size,) = view.replaced(inputs=()).values()
    read = view.replaced(op="number_item", inputs=graph.inputs[:1], params={}, outputs=(size,))
    rest = [e for e in graph.equations if size not in e.outputs]
    with pytest.raises(Unsized):
        specs = [v.spec for v in graph.inputs]
        closed(graph.replaced(equations=[read, *rest]), specs)
