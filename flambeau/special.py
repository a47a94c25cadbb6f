"""`torch.special`: the special functions that `flambeau.tensor` registers, under one name."""

from flambeau.core.nearest import missing_name
from flambeau.tensor import special  # noqa: F401  registers them
from flambeau.tensor.public import FUNCTIONS

globals().update(FUNCTIONS["special"])

__getattr__ = missing_name(__name__)
