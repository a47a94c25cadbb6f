"""Bad input raises the right class of error, says what is wrong, and changes nothing."""

import pytest

import flambeau
from flambeau.core.errors import FlambeauError
from tests.tensor.bad_input import cases, class_names, failure, operands


@pytest.mark.parametrize("expression, kind", cases())
@pytest.mark.filterwarnings("ignore")
def test_error(expression, kind):
    error, after = failure(flambeau, expression)
    assert kind in class_names(error), error
    if isinstance(error, FlambeauError):
        assert ": " in str(error) and str(error)[-1] in ".)"
    before = operands(flambeau)
    for name in ("x", "y", "ints", "bools", "complexes", "image"):
        assert after[name].tolist() == before[name].tolist(), name
    assert after["tracked"].grad is None


@pytest.mark.parametrize(
    "size", [(2**62, 8), (2**31, 2**31, 4), (2**50,), (2**63 - 1,)], ids=str
)
@pytest.mark.parametrize("make", ["zeros", "ones", "empty", "randn", "rand"])
def test_sizes_beyond_memory(make, size):
    with pytest.raises(RuntimeError):
        getattr(flambeau, make)(size)


def test_nan_goes_through():
    nan = flambeau.tensor([1.0, float("nan"), 3.0])
    assert nan.sum().isnan() and nan.max().isnan() and nan.softmax(0).isnan().all()
    assert nan.argmax() == 1 and nan.sort().values[-1].isnan()
    assert flambeau.nn.functional.cross_entropy(nan, flambeau.tensor(0)).isnan()


def test_the_text_names_the_argument():
    with pytest.raises(TypeError, match=r"got [a-z0-9]+=int"):
        flambeau.outer(flambeau.ones(1), 2)
    with pytest.raises(TypeError, match=r"zeros: dtype must be a dtype; got given=str\."):
        flambeau.zeros(2, dtype="float32")


def test_python_types_are_dtypes():
    kinds = {float: flambeau.float64, int: flambeau.int64, bool: flambeau.bool}
    for kind, meant in kinds.items():
        assert flambeau.zeros(2, dtype=kind).dtype is meant
        assert flambeau.ones(2).to(kind).dtype is meant
        assert flambeau.tensor([1], dtype=kind).dtype is meant
