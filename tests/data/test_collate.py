"""How samples are joined to a batch."""

from collections import OrderedDict, namedtuple

import numpy as np
import pytest

import flambeau as torch
from flambeau.utils.data import collate, default_collate, default_collate_fn_map, default_convert

Point = namedtuple("Point", "x y")


def test_numbers_become_tensors_of_the_widest_kind():
    assert default_collate([1, 2]).dtype == torch.int64
    assert default_collate([1.5, 2]).dtype == torch.float64
    assert default_collate([True, False]).dtype == torch.bool
    assert default_collate([np.float32(1), np.float32(2)]).dtype == torch.float32


def test_tensors_and_arrays_are_stacked():
    assert default_collate([torch.ones(2, 3), torch.zeros(2, 3)]).shape == (2, 2, 3)
    joined = default_collate([np.ones((2,), np.int16), np.zeros((2,), np.int16)])
    assert joined.dtype == torch.int16
    assert joined.tolist() == [[1, 1], [0, 0]]


def test_containers_are_walked():
    batch = default_collate([{"a": (1, "x"), "b": [2.0]}, {"a": (3, "y"), "b": [4.0]}])
    assert batch["a"][0].tolist() == [1, 3]
    assert batch["a"][1] == ("x", "y")
    assert batch["b"][0].tolist() == [2.0, 4.0]


def test_containers_keep_their_class():
    assert type(default_collate([OrderedDict(a=1), OrderedDict(a=2)])) is OrderedDict
    point = default_collate([Point(1, 2), Point(3, 4)])
    assert type(point) is Point
    assert point.y.tolist() == [2, 4]


def test_texts_stay_texts():
    assert default_collate(["a", "b"]) == ["a", "b"]
    assert default_collate([b"a", b"b"]) == [b"a", b"b"]


def test_the_map_can_be_extended():
    functions = {**default_collate_fn_map, complex: lambda batch, *, collate_fn_map: sum(batch)}
    assert collate([(1j, 1), (2j, 2)], collate_fn_map=functions)[0] == 3j


@pytest.mark.parametrize(("batch", "error", "text"), [
    ([object()], TypeError, "must contain tensors, numpy arrays, numbers"),
    ([None, None], TypeError, "NoneType"),
    ([np.array(["a"])], TypeError, "U1"),
    ([[1, 2], [3]], RuntimeError, "of equal size"),
    ([torch.ones(2), torch.ones(3)], RuntimeError, "stack"),
    ([{"a": 1}, {"b": 1}], KeyError, "a"),
    ([], IndexError, "index"),
])
def test_what_cannot_be_joined(batch, error, text):
    with pytest.raises(error, match=text):
        default_collate(batch)


def test_convert_turns_arrays_into_tensors_and_leaves_the_rest():
    converted = default_convert({"a": np.ones(2), "b": (1, np.int32(3)), "c": "text"})
    assert converted["a"].dtype == torch.float64
    assert converted["b"][0] == 1
    assert converted["b"][1].dtype == torch.int32
    assert converted["c"] == "text"
