"""The memory of results: all that strides reach is there."""

import numpy as np
import pytest

from flambeau.core import dtype as dtypes
from flambeau.core.spec import spec
from flambeau.eager.memory import empty_array

LAYOUTS = [
    ((4, 3), (3, 1)), ((4, 3), (1, 4)), ((4, 3), (32, 1)), ((64, 300), (512, 1)), ((3, 5), (0, 2)),
    ((2, 3, 4), (100, 7, 1)), ((1, 3), (99, 5)), ((0, 3), (7, 2)), ((), ()), ((5,), (9,)),
]  # fmt: skip


@pytest.mark.parametrize("shape, strides", LAYOUTS)
@pytest.mark.parametrize("kind", [dtypes.uint8, dtypes.float32, dtypes.complex128])
def test_every_element_has_a_place_in_the_memory(shape, strides, kind):
    array = empty_array(spec(kind, shape, strides))
    assert array.shape == shape
    if 0 not in shape:
        wide = [d for d, n in enumerate(shape) if n > 1]
        assert [array.strides[d] for d in wide] == [strides[d] * kind.itemsize for d in wide]
    owner = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    low, high = np.lib.array_utils.byte_bounds(array)
    first, last = np.lib.array_utils.byte_bounds(owner)
    assert first <= low and high <= last
