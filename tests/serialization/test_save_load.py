"""Objects through a file and back."""

import io
import os
import pathlib
import pickle
from collections import Counter, OrderedDict, defaultdict, deque

import numpy as np
import pytest

import flambeau as torch
from flambeau import nn

DTYPES = ["float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2",
          "complex64", "complex128", "int8", "int16", "int32", "int64", "uint8", "uint16",
          "uint32", "uint64", "bool"]


def through(value, protocol=2, **arguments):
    file = io.BytesIO()
    torch.save(value, file, pickle_protocol=protocol)
    file.seek(0)
    return torch.load(file, **arguments)


def same(a, b):
    return (a.dtype == b.dtype and a.shape == b.shape and a.stride() == b.stride()
            and a.storage_offset() == b.storage_offset() and a.tolist() == b.tolist()
            and a.requires_grad == b.requires_grad and type(a) is type(b))


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("name", DTYPES)
def test_every_dtype(name, protocol):
    x = torch.tensor([0, 1, 1, 0, 1]).to(getattr(torch, name))
    assert same(through(x, protocol), x)


@pytest.mark.parametrize("make", [
    lambda x: x,
    lambda x: x.t(),
    lambda x: x[1:, ::2],
    lambda x: x[0, 0],
    lambda x: x[:1].expand(3, 4),
    lambda x: x[2:2],
    lambda x: x.clone().requires_grad_(),
    lambda x: nn.Parameter(x),
    lambda x: nn.Parameter(x.t(), requires_grad=False),
])
def test_every_layout(make):
    x = make(torch.arange(12.0).reshape(3, 4))
    assert same(through(x), x)


def test_views_share_memory_again():
    x = torch.arange(6.0)
    a, b, c = through([x, x[2:], x.reshape(2, 3).t()])
    a[3] = 50.0
    assert b.tolist() == [2, 50, 4, 5]
    assert c.tolist() == [[0, 50], [1, 4], [2, 5]]


def test_one_tensor_twice_is_one_again():
    x = torch.ones(2)
    a, b = through((x, x))
    assert a is b


def test_views_of_different_dtypes_share_memory_again():
    x = torch.zeros(4)
    a, b = through([x, x.view(torch.int32)])
    a[1] = 1.0
    assert b.tolist() == [0, 0x3F800000, 0, 0]


def test_empty_tensors_do_not_become_views_of_each_other():
    a, b = through([torch.zeros(0), torch.zeros(0, 3)])
    assert a.shape == (0,)
    assert b.shape == (0, 3)


@pytest.mark.parametrize("protocol", [2, 4, 5])
@pytest.mark.parametrize("value", [
    None, True, 0, -1, 255, 65536, 2**31, -(2**63), 2**100, 1.5, float("inf"), 1 + 2j, "", "text é",
    b"", b"bytes\xff", bytearray(b"\x00a"), (), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), [], [1, [2]],
    {}, {"a": {"b": 1}}, {(1, "x"): 2}, set(), {1, 2}, frozenset([3]), range(3), slice(1, None),
    OrderedDict(a=1), defaultdict(list, {1: [2]}), Counter("aab"), deque([1, 2], 5),
    torch.float32, torch.bfloat16, torch.Size([2, 3]), torch.device("cpu"),
    torch.device("cuda", 1), torch.strided,
], ids=repr)
def test_every_kind_of_value(value, protocol):
    got = through(value, protocol)
    assert got == value
    assert type(got) is type(value)


@pytest.mark.parametrize("protocol", [2, 5])
@pytest.mark.parametrize("value", [np.float64(2.5), np.int32(3), np.bool_(True),
                                   np.arange(6).reshape(2, 3), np.ones((2, 2), order="F"),
                                   np.array(["a", "bc"]), np.arange(3, dtype=">i4")])
def test_numpy_values(value, protocol):
    got = through({"x": value}, protocol)["x"]
    assert type(got) is type(value)
    assert got.dtype.newbyteorder("=") == value.dtype.newbyteorder("=")
    assert np.array_equal(got, value)


def test_lists_that_hold_themselves():
    value = [1]
    value.append(value)
    got = through(value)
    assert got[1] is got


def test_state_dict_keeps_its_metadata():
    state = nn.BatchNorm1d(3).state_dict()
    got = through(state)
    assert type(got) is OrderedDict
    assert list(got) == list(state)
    assert got._metadata == state._metadata


def test_training_state_resumes():
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))
    optimizer = torch.optim.Adam(model.parameters())
    x = torch.ones(5, 3)
    model(x).sum().backward()
    optimizer.step()
    saved = through(dict(model=model.state_dict(), optimizer=optimizer.state_dict(), epoch=3))
    other = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))
    resumed = torch.optim.Adam(other.parameters())
    other.load_state_dict(saved["model"])
    resumed.load_state_dict(saved["optimizer"])
    for net, stepper in ((model, optimizer), (other, resumed)):
        stepper.zero_grad()
        net(x).sum().backward()
        stepper.step()
    assert model(x).tolist() == other(x).tolist()


def test_random_state_resumes():
    g = torch.Generator().manual_seed(3)
    torch.rand(5, generator=g)
    state, whole = through((g.get_state(), g))
    expected = torch.rand(3, generator=g).tolist()
    again = torch.Generator()
    again.set_state(state)
    assert torch.rand(3, generator=again).tolist() == expected
    assert torch.rand(3, generator=whole).tolist() == expected


def test_meta_tensors_have_no_memory():
    got = through(torch.ones(2, 3, device="meta"))
    assert got.device.type == "meta"
    assert got.shape == (2, 3)


def test_attributes_of_parameters_are_kept():
    p = nn.Parameter(torch.ones(2))
    p.note = "kept"
    assert through(p).note == "kept"


def test_paths_files_and_buffers(tmp_path):
    path = tmp_path / "model.v1.pt"
    torch.save({"x": torch.ones(2)}, path)
    assert torch.load(str(path))["x"].tolist() == [1, 1]
    assert torch.load(pathlib.Path(path))["x"].tolist() == [1, 1]
    with open(path, "rb") as file:
        assert torch.load(file)["x"].tolist() == [1, 1]
    with open(tmp_path / "other", "wb") as file:
        torch.save([1], file)
    assert torch.load(tmp_path / "other") == [1]


def test_the_same_object_gives_the_same_bytes(tmp_path):
    value = dict(x=torch.arange(5), y="text")
    files = [io.BytesIO(), io.BytesIO()]
    for file in files:
        torch.save(value, file)
    assert files[0].getvalue() == files[1].getvalue()


def test_a_file_that_cannot_seek_can_be_written():
    class Pipe(io.RawIOBase):
        def __init__(self):
            self.data = bytearray()

        def writable(self):
            return True

        def write(self, data):
            self.data += data
            return len(data)

    pipe = Pipe()
    torch.save(torch.arange(1000), pipe)
    assert torch.load(io.BytesIO(bytes(pipe.data))).tolist() == list(range(1000))


def test_mapped_files_are_read_when_touched_and_never_written(tmp_path):
    path = tmp_path / "x.pt"
    x = torch.arange(1000.0)
    torch.save([x, x[10:], x.to(torch.bfloat16)], path)
    before = path.read_bytes()
    a, b, c = torch.load(path, mmap=True)
    assert c.dtype == torch.bfloat16
    a[10] = -1.0
    assert b[0].item() == -1.0
    assert path.read_bytes() == before
    with pytest.raises(ValueError, match="must be a path when mmap=True"):
        torch.load(io.BytesIO(before), mmap=True)


@pytest.mark.parametrize("where", [
    "cpu", torch.device("cpu"), {"cuda:0": "cpu"}, lambda storage, location: storage,
    lambda storage, location: None])
def test_map_location(where):
    assert through(torch.ones(2), map_location=where).tolist() == [1, 1]


def test_map_location_to_meta_reads_nothing():
    a, b = through([torch.ones(4), nn.Parameter(torch.ones(2))], map_location="meta")
    assert a.device.type == b.device.type == "meta"
    assert type(b) is nn.Parameter


def test_a_device_that_is_not_there_is_named_with_the_cure():
    with pytest.raises(RuntimeError, match=r"map_location=torch.device\('cpu'\)"):
        through(torch.ones(2), map_location="cuda:0")


@pytest.mark.parametrize(("call", "error", "text"), [
    (lambda: torch.save(1, 3), AttributeError, "write"),
    (lambda: torch.load(3), AttributeError, "read"),
    (lambda: torch.load("no such file.pt"), FileNotFoundError, "no such file"),
    (lambda: torch.load(os.curdir), IsADirectoryError, "directory"),
    (lambda: torch.save(1, "no such folder/x.pt"), RuntimeError, "does not exist"),
    (lambda: torch.save(1, io.BytesIO(), pickle_protocol=1), ValueError, "pickle_protocol"),
    (lambda: torch.load(io.BytesIO()), EOFError, "Ran out of input"),
    (lambda: through(torch.ones(1), map_location=3), TypeError, "map_location"),
])
def test_wrong_arguments(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_what_cannot_be_pickled_leaves_the_old_file(tmp_path):
    path = tmp_path / "x.pt"
    torch.save([1, 2], path)
    with pytest.raises((AttributeError, TypeError, pickle.PicklingError)):
        torch.save([torch.ones(3), lambda: 0], path)
    assert torch.load(path) == [1, 2]
    assert os.listdir(tmp_path) == ["x.pt"]
