"""Recurrences along a dimension by the kernel: what the reference gives, at all vector levels."""

import numpy as np
import pytest

from flambeau.codegen import target, templates
from flambeau.codegen.templates import AffineScanSpec
from flambeau.ops.scans import recurrence_ref

SHAPES = [(1, 300, 1), (7, 1, 5), (3, 50, 17), (2, 9, 130), (40, 6, 1), (1, 33, 64)]


@pytest.mark.parametrize("level", ["avx512", "avx2", "baseline"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("reverse", [False, True])
def test_lines_of_all_shapes(level, dtype, reverse):
    rng = np.random.default_rng(0)
    with target.restricted(level):
        for shape in SHAPES:
            a, b = (rng.uniform(-1, 1, shape).astype(dtype) for _ in range(2))
            memory = np.full(a.size + 32, 7.5, dtype)
            out = memory[16:-16].reshape(shape)
            program = templates.scan(AffineScanSpec(*shape, reverse, dtype))
            program(a.ctypes.data, b.ctypes.data, out.ctypes.data)
            wanted = recurrence_ref(a, b, dim=1, reverse=reverse)
            np.testing.assert_allclose(out, wanted, rtol=1e-5, atol=1e-6)
            assert (memory[:16] == 7.5).all() and (memory[-16:] == 7.5).all()
