"""safetensors files."""

import numpy as np
import pytest

import flambeau as torch
from flambeau.serialization.safetensors import load, load_file, save, save_file

DTYPES = ["float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2",
          "complex64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
          "bool"]


def test_every_dtype_and_shape(tmp_path):
    tensors = {name: torch.tensor([[0, 1, 1], [1, 0, 1]]).to(getattr(torch, name))
               for name in DTYPES}
    tensors |= dict(empty=torch.zeros(0, 3), scalar=torch.tensor(2.5),
                    turned=torch.arange(6).reshape(2, 3).t())
    path = tmp_path / "x.safetensors"
    save_file(tensors, path)
    for got in (load_file(path), load(save(tensors))):
        assert set(got) == set(tensors)
        for name, t in tensors.items():
            assert got[name].dtype == t.dtype
            assert got[name].shape == t.shape
            assert got[name].tolist() == t.tolist()


def test_metadata_and_other_readers(tmp_path):
    from safetensors import safe_open

    path = tmp_path / "x.safetensors"
    save_file({"a": torch.ones(2, 3)}, path, metadata={"format": "pt"})
    with safe_open(path, framework="np") as file:
        assert file.metadata() == {"format": "pt"}
        assert np.array_equal(file.get_tensor("a"), np.ones((2, 3)))


def test_loading_to_meta(tmp_path):
    path = tmp_path / "x.safetensors"
    save_file({"a": torch.ones(2, 3)}, path)
    assert load_file(path, device="meta")["a"].device.type == "meta"


def test_shared_memory_is_refused():
    x = torch.ones(4)
    with pytest.raises(RuntimeError, match="share memory"):
        save({"a": x, "b": x[1:]})


@pytest.mark.parametrize(("tensors", "error"), [
    ([1], ValueError), ({"a": 3}, ValueError), ({"a": torch.ones(1, dtype=torch.complex128)},
                                               TypeError)])
def test_what_the_format_cannot_hold(tensors, error):
    with pytest.raises(error, match="save_file"):
        save(tensors)


@pytest.mark.parametrize("change", [
    lambda data: data[:-4], lambda data: b"\xff" * 8 + data[8:], lambda data: data[:20],
    lambda data: data.replace(b"[2,3]", b"[2,4]"), lambda data: b""])
def test_damaged_files(tmp_path, change):
    data = change(save({"a": torch.ones(2, 3)}))
    path = tmp_path / "x.safetensors"
    path.write_bytes(data)
    for attempt in (lambda: load_file(path), lambda: load(data)):
        with pytest.raises(RuntimeError, match="safetensors format"):
            attempt()
