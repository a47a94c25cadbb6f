"""Scores of paths and their gradient against the reference in float64, inside of canaries."""

from __future__ import annotations

import numpy as np
import pytest

from flambeau.codegen import templates
from flambeau.codegen.templates.path_scores import PathSpec
from flambeau.ops import paths
from tests.codegen.templates.conftest import Guarded

SIZES = [(1, 1, 1), (4, 3, 2), (9, 2, 5), (30, 3, 17), (25, 2, 64), (3, 2, 40)]


@pytest.mark.parametrize("dtype, bound", [("float32", 2e-4), ("float64", 1e-11)])
def test_scores_and_gradients(dtype, bound, level, rng):
    for steps, batch, width in SIZES:
        step = rng.normal(size=(steps, batch, width)).astype(dtype)
        if steps > 2:
            step[2, :, ::3] = -np.inf
        skip = rng.random((batch, width)) > 0.5
        skip[:, :2] = False
        lengths = np.array([steps, 0, max(steps - 2, 1)][:batch])
        ct = rng.normal(size=(batch, width)).astype(dtype)
        wide = step.astype("f8"), skip, lengths
        with np.errstate(invalid="ignore"):
            scores = paths.scores_ref(*wide)
            gradient = paths.backward(paths.Arrays, ct.astype("f8"), *wide)
        given = [a.ctypes.data for a in (step, skip, lengths)]
        out, made = Guarded(scores.shape, dtype), Guarded(gradient.shape, dtype)
        templates.paths(PathSpec(steps, batch, width, False, dtype))(*given, out.address)
        templates.paths(PathSpec(steps, batch, width, True, dtype))(
            ct.ctypes.data, *given, made.address)
        np.testing.assert_allclose(out.check(), scores, rtol=bound, atol=bound)
        np.testing.assert_allclose(made.check(), gradient, rtol=bound, atol=bound)
