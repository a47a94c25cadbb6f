"""Parameters and buffers: identity, copies, pickles, and those without a shape."""

import copy
import pickle

import pytest

import flambeau as fb
from flambeau import nn
from flambeau.nn.parameter import UninitializedBuffer, UninitializedParameter, is_lazy


def test_a_parameter_shares_memory_with_its_data():
    data = fb.zeros(3)
    parameter = nn.Parameter(data)
    data[0] = 5
    assert parameter.tolist() == [5, 0, 0]
    assert parameter.requires_grad and parameter.is_leaf
    assert not nn.Parameter(data, requires_grad=False).requires_grad


def test_results_of_a_parameter_are_tensors():
    parameter = nn.Parameter(fb.ones(2))
    assert type(parameter + 1) is fb.Tensor
    assert type(parameter.detach()) is fb.Tensor
    assert type(parameter.data) is fb.Tensor


def test_text_form():
    assert repr(nn.Parameter(fb.ones(2))) == (
        "Parameter containing:\ntensor([1., 1.], requires_grad=True)"
    )
    assert repr(UninitializedParameter()) == "<UninitializedParameter>"


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda p: pickle.loads(pickle.dumps(p))])
def test_copies_keep_kind_values_and_flags(copied):
    parameter = nn.Parameter(fb.arange(3.0), requires_grad=False)
    parameter.tag = "mine"
    other = copied(parameter)
    assert type(other) is nn.Parameter and other is not parameter
    assert other.tolist() == [0, 1, 2] and not other.requires_grad and other.tag == "mine"
    buffer = copied(nn.Buffer(fb.ones(2), persistent=False))
    assert type(buffer) is nn.Buffer and not buffer.persistent
    lazy = copied(UninitializedParameter(dtype=fb.float64))
    assert type(lazy) is UninitializedParameter and lazy.dtype is fb.float64


def test_deepcopy_of_shared_parameters_stays_shared():
    parameter = nn.Parameter(fb.ones(2))
    one, two = copy.deepcopy([parameter, parameter])
    assert one is two


def test_uninitialized_tensors_have_no_shape_until_materialized():
    parameter = UninitializedParameter(dtype=fb.float64)
    assert is_lazy(parameter)
    with pytest.raises(RuntimeError, match="no shape yet"):
        _ = parameter.shape
    parameter.materialize((2, 3))
    assert type(parameter) is nn.Parameter and not is_lazy(parameter)
    assert tuple(parameter.shape) == (2, 3) and parameter.dtype is fb.float64
    buffer = UninitializedBuffer()
    buffer.materialize((4,))
    assert isinstance(buffer, nn.Buffer) and tuple(buffer.shape) == (4,)
