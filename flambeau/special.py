"""`torch.special`: the special functions that `flambeau.tensor` registers, under one name."""

from flambeau.tensor import special  # noqa: F401  registers them
from flambeau.tensor.public import FUNCTIONS

globals().update(FUNCTIONS["special"])
