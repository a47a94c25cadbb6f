"""`torch.masked`: reductions and normalisations over the elements that a mask selects."""

from flambeau.core.nearest import missing_name as _missing_name
from flambeau.masked import (
    normalising as _normalising,
)
from flambeau.masked import (
    reducing as _reducing,
)
from flambeau.masked import (
    spreads as _spreads,
)
from flambeau.tensor.public import FUNCTIONS as _FUNCTIONS

globals().update(_FUNCTIONS["masked"])
__getattr__ = _missing_name(__name__)
