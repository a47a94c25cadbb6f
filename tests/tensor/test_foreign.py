"""Tensors on memory that others own."""

import numpy as np
import pytest

import flambeau as torch


def test_an_array_with_gaps_is_shared():
    array = np.arange(30.0).reshape(5, 6)
    t = torch.from_numpy(array[1:, :-1])
    assert t.stride() == (6, 1)
    assert t[:, 1:3].tolist() == array[1:, 1:3].tolist()
    t[1:].add_(100)
    assert array[2, 0] == 112.0 and array[2, 5] == 17.0


def test_every_other_element():
    t = torch.from_numpy(np.arange(12.0)[::2])
    assert [part.tolist() for part in t.split(4)] == [[0.0, 2.0, 4.0, 6.0], [8.0, 10.0]]


def test_dlpack_both_ways():
    array = np.arange(4.0)
    t = torch.from_dlpack(array)
    t[0] = 9
    assert array[0] == 9 and np.from_dlpack(t)[0] == 9
    assert torch.from_dlpack(torch.utils.dlpack.to_dlpack(t)).tolist() == t.tolist()
    with pytest.raises(RuntimeError, match="detach"):
        torch.ones(2, requires_grad=True).__dlpack__()


def test_numpy_reads_a_tensor():
    t = torch.arange(3, dtype=torch.float32)
    assert np.asarray(t) is not None and np.shares_memory(np.asarray(t), t.numpy())
    assert np.asarray(t, dtype=np.float64).dtype == np.float64
    assert isinstance(np.ones(3, np.float32) + t, torch.Tensor)
    assert float(np.sum(t.numpy())) == 3.0


def test_asarray():
    array = np.arange(3)
    assert np.shares_memory(torch.asarray(array).numpy(), array)
    assert not np.shares_memory(torch.asarray(array, copy=True).numpy(), array)
    with pytest.raises(ValueError, match="copy=False"):
        torch.asarray([1, 2], copy=False)
    with pytest.raises(ValueError, match="copy=False"):
        torch.asarray(array, dtype=torch.float32, copy=False)
    assert torch.asarray(2.5, requires_grad=True).requires_grad


def test_frombuffer():
    memory = bytearray(np.arange(4, dtype=np.int32).tobytes())
    t = torch.frombuffer(memory, dtype=torch.int32, count=2, offset=4)
    t[0] = 7
    assert memory[4] == 7 and t.tolist() == [7, 2]
    for options in ({"offset": 99}, {"count": 9}, {"offset": 1}):
        with pytest.raises(ValueError):
            torch.frombuffer(memory, dtype=torch.int32, **options)


def test_a_file_is_shared(tmp_path):
    path = str(tmp_path / "numbers")
    torch.from_file(path, shared=True, size=3).fill_(2.0)
    assert torch.from_file(path, size=3).tolist() == [2.0, 2.0, 2.0]


def test_storages():
    t = torch.arange(6.0).view(2, 3)
    whole = t.untyped_storage()
    assert whole.nbytes() == 24 and whole.data_ptr() == t.data_ptr() == t[0].data_ptr()
    assert t[1].untyped_storage() == whole
    t.storage()[5] = 8.0
    assert t[1, 2] == 8 and t.storage().tolist()[:2] == [0.0, 1.0]
    again = torch.empty(0).set_(t.untyped_storage(), 3, (3,), (1,))
    assert again.tolist() == [3.0, 4.0, 8.0]
    assert isinstance(t.storage(), torch.FloatStorage)


def test_typed_constructors():
    assert torch.LongTensor([1, 2]).dtype is torch.int64
    assert torch.ByteTensor(2, 3).shape == (2, 3)
    assert isinstance(torch.ones(1), torch.FloatTensor)
    assert not isinstance(torch.ones(1), torch.LongTensor)
    assert torch.ones(1).type() == "torch.FloatTensor"
    assert torch.ones(1).type(torch.IntTensor).dtype is torch.int32
    assert torch.ones(1).type("torch.DoubleTensor").dtype is torch.float64
    assert (torch.LongTensor | None) is not None
    with pytest.raises(TypeError, match=r"torch\.FloatTensor"):
        torch.cuda.FloatTensor(2)
