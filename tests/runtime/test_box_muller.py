"""Normals made natively are those of the NumPy formula, bit for bit, and move the state alike."""

import numpy as np
import pytest

from flambeau.runtime import box_muller, draws, normals

pytestmark = pytest.mark.skipif(
    not box_muller.is_supported(), reason="the processor has no fused multiply-adds"
)


def by_formula(engine, count: int, mean: float, std: float, monkeypatch) -> np.ndarray:
    with monkeypatch.context() as patch:
        patch.setattr(normals, "NATIVE_FROM", 1 << 60)
        return normals.in_blocks(engine, count, np.dtype(np.float32), mean, std)


@pytest.mark.parametrize("count", [16, 17, 31, 2048, 4096, 4111, 300_007])
def test_native_normals_are_those_of_the_formula(count, monkeypatch):
    native, plain = draws.Engine(3), draws.Engine(3)
    for mean, std in ((0.0, 1.0), (0.3, 2.5), (-1e-3, 0.02), (1.0, 0.0)):
        got = normals.in_native_blocks(native, count, mean, std)
        want = by_formula(plain, count, mean, std, monkeypatch)
        assert np.array_equal(got.view(np.int32), want.view(np.int32))
        assert np.array_equal(native.get_state(), plain.get_state())


@pytest.mark.parametrize("dtype", [np.bool_, np.float16, np.float32, np.float64])
@pytest.mark.parametrize("count", [1, 15, 1023, 1024, 1041, 50_000])
def test_choices_made_natively_are_those_of_the_words(count, dtype):
    native, plain = draws.Engine(4), draws.Engine(4)
    out, value = np.empty(count, dtype), np.ones((), dtype)
    native.choose(out, 3 << 50, value)
    assert np.array_equal(out, (plain.low53(count) < np.uint64(3 << 50)).astype(dtype))
    assert np.array_equal(native.get_state(), plain.get_state())
