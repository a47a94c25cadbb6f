"""Checkpoints both ways between flambeau and PyTorch."""

import io
import pickle
from collections import OrderedDict

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import flambeau  # noqa: E402
from flambeau import nn  # noqa: E402

DTYPES = ["float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2",
          "complex64", "complex128", "int8", "int16", "int32", "int64", "uint8", "uint16",
          "uint32", "uint64", "bool"]


def theirs_from_ours(value, **arguments):
    """PyTorch's safe loader reads what we write."""
    file = io.BytesIO()
    flambeau.save(value, file)
    file.seek(0)
    return torch.load(file, weights_only=True, **arguments)


def ours_from_theirs(value, **arguments):
    file = io.BytesIO()
    torch.save(value, file, **arguments)
    file.seek(0)
    return flambeau.load(file)


def facts(t):
    data = None if t.device.type == "meta" else t.detach().tolist()
    return (str(t.dtype), tuple(t.shape), tuple(t.stride()), t.storage_offset(), t.requires_grad,
            type(t).__name__, data)


@pytest.mark.parametrize("name", DTYPES)
def test_every_dtype(name):
    for framework, carry in ((flambeau, theirs_from_ours), (torch, ours_from_theirs)):
        x = framework.tensor([0, 1, 1, 0]).to(getattr(framework, name))
        assert facts(carry(x)) == facts(x)


@pytest.mark.parametrize("make", [
    lambda f, x: x, lambda f, x: x.t(), lambda f, x: x[1:, ::2], lambda f, x: x[0, 0],
    lambda f, x: x[:1].expand(3, 4), lambda f, x: x[2:2], lambda f, x: f.nn.Parameter(x),
    lambda f, x: f.nn.Parameter(x.t(), requires_grad=False),
    lambda f, x: x.clone().requires_grad_(), lambda f, x: f.ones(2, 3, device="meta"),
    lambda f, x: f.zeros(0, 3), lambda f, x: f.ones(())])
def test_every_layout(make):
    for framework, carry in ((flambeau, theirs_from_ours), (torch, ours_from_theirs)):
        x = make(framework, framework.arange(12.0).reshape(3, 4))
        assert facts(carry(x)) == facts(x)


@pytest.mark.parametrize("value", [
    None, True, 1, 2**70, -3, 1.5, 2 + 1j, "é", b"b\xff", bytearray(b"x"), (1, (2,)), [1, [2]],
    {"a": {1: None}}, {1, 2}, OrderedDict(a=1)], ids=repr)
def test_every_kind_of_value(value):
    for carry in (theirs_from_ours, ours_from_theirs):
        got = carry(value)
        assert got == value
        assert type(got) is type(value)


@pytest.mark.parametrize("name", ["float32", "bfloat16", "uint16", "bool"])
def test_names_of_dtypes_sizes_and_devices(name):
    for mine, other, carry in ((flambeau, torch, theirs_from_ours),
                               (torch, flambeau, ours_from_theirs)):
        value = [getattr(mine, name), mine.Size([1, 2]), mine.device("cuda", 1), mine.strided]
        assert carry(value) == [getattr(other, name), other.Size([1, 2]),
                                other.device("cuda", 1), other.strided]


def test_views_share_memory_on_the_other_side():
    x = flambeau.arange(6.0)
    a, b = theirs_from_ours([x, x[2:]])
    a[3] = 50
    assert b.tolist() == [2, 50, 4, 5]
    y = torch.arange(6.0)
    a, b = ours_from_theirs([y, y[2:]])
    a[3] = 50
    assert b.tolist() == [2, 50, 4, 5]


def test_views_of_different_dtypes_can_be_read_by_pytorch():
    x = flambeau.zeros(4)
    a, b = theirs_from_ours([x, x.view(flambeau.int32)])
    a[1] = 1.0
    assert b.tolist() == [0, 0x3F800000, 0, 0]


@pytest.mark.parametrize("arguments", [
    dict(), dict(pickle_protocol=3), dict(pickle_protocol=4), dict(pickle_protocol=5),
    dict(_use_new_zipfile_serialization=False), dict(_disable_byteorder_record=True)], ids=str)
def test_state_dicts_written_by_pytorch(arguments):
    model = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2))
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 1, 5, 5)).sum().backward()
    optimizer.step()
    saved = dict(model=model.state_dict(), optimizer=optimizer.state_dict(), best=np.float64(0.5),
                 rng=torch.get_rng_state())
    got = ours_from_theirs(saved, **arguments)
    assert type(got["model"]) is OrderedDict
    assert got["model"]._metadata == model.state_dict()._metadata
    for name, t in model.state_dict().items():
        assert facts(got["model"][name]) == facts(t)
    assert got["optimizer"]["param_groups"] == optimizer.state_dict()["param_groups"]
    assert got["best"] == 0.5
    generator = flambeau.Generator()
    generator.set_state(got["rng"])
    assert flambeau.rand(1, generator=generator).item() == torch.rand(1).item()


def test_state_dicts_written_by_flambeau():
    mine = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Linear(4, 2))
    state = mine.state_dict()
    got = theirs_from_ours(state)
    assert got._metadata == state._metadata
    other = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2),
                                torch.nn.Linear(4, 2))
    other.load_state_dict(got)
    for name, t in state.items():
        assert facts(other.state_dict()[name]) == facts(t)


def test_mapped_and_meta_loading_of_our_files_by_pytorch(tmp_path):
    path = tmp_path / "x.pt"
    flambeau.save([flambeau.arange(100.0), flambeau.ones(3)], path)
    assert torch.load(path, mmap=True)[0].tolist() == list(range(100))
    assert torch.load(path, map_location="meta")[1].device.type == "meta"


def test_mapped_loading_of_pytorchs_files(tmp_path):
    path = tmp_path / "x.pt"
    torch.save([torch.arange(100.0), torch.ones(3, dtype=torch.bfloat16)], path)
    a, b = flambeau.load(path, mmap=True)
    assert a.tolist() == list(range(100))
    assert b.tolist() == [1, 1, 1]


def test_files_without_checksums(tmp_path):
    before = torch.serialization.get_crc32_options()
    torch.serialization.set_crc32_options(False)
    try:
        got = ours_from_theirs({"x": torch.arange(50)})
    finally:
        torch.serialization.set_crc32_options(before)
    assert got["x"].tolist() == list(range(50))


def test_conjugate_views_are_resolved():
    x = torch.tensor([1 + 2j, 3 - 1j]).conj()
    assert ours_from_theirs(x).tolist() == [1 - 2j, 3 + 1j]
    y = torch.tensor([1 + 2j]).conj().imag
    assert ours_from_theirs(y).tolist() == [-2]


def test_generators_and_numpy_arrays():
    g = torch.Generator().manual_seed(3)
    torch.rand(3, generator=g)
    mine, array = ours_from_theirs([g, np.arange(6).reshape(2, 3)])
    assert flambeau.rand(2, generator=mine).tolist() == torch.rand(2, generator=g).tolist()
    assert array.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_whole_modules_of_pytorch_name_what_is_missing():
    with pytest.raises(pickle.UnpicklingError, match=r"torch\.nn\.modules\.linear\.Linear"):
        ours_from_theirs(torch.nn.Linear(1, 1))


@pytest.mark.filterwarnings("ignore:Sparse invariant")
def test_sparse_tensors_are_refused_by_name():
    with pytest.raises(pickle.UnpicklingError, match="_rebuild_sparse_tensor"):
        ours_from_theirs(torch.sparse_coo_tensor([[0]], [1.0], (3,)))


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04aaaa", b"\x80\x02}q\x00."])
def test_error_classes(data):
    with pytest.raises(Exception) as reference:
        torch.load(io.BytesIO(data))
    with pytest.raises(type(reference.value)):
        flambeau.load(io.BytesIO(data))


def test_safetensors_of_both_sides(tmp_path):
    from safetensors.torch import load_file as their_load
    from safetensors.torch import save_file as their_save

    from flambeau.serialization.safetensors import load_file, save_file

    path = tmp_path / "x.safetensors"
    save_file({"a": flambeau.arange(4.0), "b": flambeau.ones(2, dtype=flambeau.bfloat16)}, path)
    got = their_load(path)
    assert got["a"].tolist() == [0, 1, 2, 3]
    assert got["b"].dtype == torch.bfloat16
    their_save({"a": torch.arange(4.0), "b": torch.ones(2, dtype=torch.float8_e5m2)}, path)
    mine = load_file(path)
    assert mine["a"].tolist() == [0, 1, 2, 3]
    assert mine["b"].dtype == flambeau.float8_e5m2
