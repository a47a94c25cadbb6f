"""`torch.nn.functional`: the functions that `flambeau.functional` registers, under one name."""

from flambeau.functional import families  # noqa: F401  registers them
from flambeau.tensor.public import FUNCTIONS

globals().update(FUNCTIONS["nn.functional"])
