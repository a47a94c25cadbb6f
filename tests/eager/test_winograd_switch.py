"""FLAMBEAU_WINOGRAD chooses how 3 x 3 convolutions are summed."""

import pytest

from flambeau.core import dtype as dtypes
from flambeau.core.errors import OpError
from flambeau.core.spec import spec
from flambeau.eager.native.convolutions import conv_spec

PICTURE, WINDOW = (2, 32, 16, 16), (32, 32, 3, 3)
HOW = dict(stride=(1, 1), padding=(1, 1), dilation=(1, 1), groups=1)


def described():
    x, w = (spec(dtypes.float32, shape) for shape in (PICTURE, WINDOW))
    return conv_spec(x, w, x, HOW)


@pytest.mark.parametrize("side", [0, 2, 4])
def test_the_side_of_tiles(monkeypatch, side):
    monkeypatch.setenv("FLAMBEAU_WINOGRAD", str(side))
    assert described().winograd == side


def test_a_side_that_does_not_exist(monkeypatch):
    monkeypatch.setenv("FLAMBEAU_WINOGRAD", "3")
    with pytest.raises(OpError, match="must be 0, 2 or 4"):
        described()
