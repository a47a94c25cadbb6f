"""`ops.aten`, layers with their statistics and segments, against PyTorch."""

import numpy as np
import pytest

import flambeau as fb

torch = pytest.importorskip("torch")


def both(array):
    return fb.from_numpy(np.array(array)), torch.from_numpy(np.array(array))


def close(got, expected, tolerance=1e-6):
    for g, e in zip(got, expected, strict=True):
        assert str(g.dtype) == str(e.dtype)
        np.testing.assert_allclose(g.detach().numpy(), e.detach().numpy(), tolerance, tolerance)


RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 6, 4))

CASES = {
    "slice.Tensor": lambda lib, x: (lib.ops.aten.slice.Tensor(x, 1, 1, -1, 2),),
    "_softmax": lambda lib, x: (lib.ops.aten._softmax.default(x, 1, False),),
    "native_layer_norm": lambda lib, x: lib.native_layer_norm(x, (4,), None, None, 1e-5),
    "native_group_norm": lambda lib, x: lib.native_group_norm(x, None, None, 2, 6, 4, 3, 1e-5),
    "native_batch_norm": lambda lib, x: lib.native_batch_norm(
        x, None, None, None, None, True, 0.1, 1e-5),
    "constant_pad_nd": lambda lib, x: (lib.constant_pad_nd(x, (1, 2), 3.0),),
    "linalg_vector_norm": lambda lib, x: (lib.ops.aten.linalg_vector_norm(x),),
    "add.Tensor": lambda lib, x: (lib.ops.aten.add.Tensor(x, x, alpha=2),),
    "_chunk_cat": lambda lib, x: (lib._chunk_cat([x, x], 1, 4),),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_operators(case):
    ours, theirs = both(X)
    close(case(fb, ours), case(torch, theirs))


def test_an_operator_that_does_not_exist():
    assert not hasattr(fb.ops.aten, "no_such_operator")
    assert repr(fb.ops.aten.add.Tensor) == "<operator aten.add.Tensor>"


@pytest.mark.parametrize("initial", [None, 1.0])
@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min", "prod"])
def test_segments(reduce, initial):
    data = RNG.normal(size=(6, 2))
    ours, theirs = both(data)
    lengths = np.array([2, 0, 3, 1])
    mine, twin = both(lengths)
    close((fb.segment_reduce(ours, reduce, lengths=mine, initial=initial),),
          (torch.segment_reduce(theirs, reduce, lengths=twin, initial=initial),))
    mine, twin = both(np.array([0, 2, 2, 5, 6]))
    close((fb.segment_reduce(ours, reduce, offsets=mine, initial=initial),),
          (torch.segment_reduce(theirs, reduce, offsets=twin, initial=initial),))
    with pytest.raises(RuntimeError, match="lengths must be non-negative"):
        fb.segment_reduce(ours, reduce, lengths=fb.tensor([2, 2]))
