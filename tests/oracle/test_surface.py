"""Every public name of PyTorch's main namespaces exists, or is known to be left out."""

import pytest

import flambeau
from tests.surface.names import NAMESPACES, absent_names, missing

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_nothing_is_missing_by_accident(namespace):
    unexpected = set(missing(torch, flambeau, namespace)) - absent_names().get(namespace, set())
    assert not unexpected
