"""The recorded classes of errors are those that PyTorch raises."""

import pytest

from tests.tensor.bad_input import cases, class_names, failure

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("expression, kind", cases())
@pytest.mark.filterwarnings("ignore")
def test_pytorch_raises_the_same(expression, kind):
    error, _ = failure(torch, expression)
    assert kind in class_names(error), error
