"""`torch.nn.functional`: the functions that `flambeau.functional` registers, under one name."""

from typing import Any

from flambeau.core.nearest import missing_name
from flambeau.functional import families  # noqa: F401  registers them
from flambeau.tensor.public import FUNCTIONS

globals().update(FUNCTIONS["nn.functional"])

_missing = missing_name(__name__)


def __getattr__(name: str) -> Any:
    return _missing(name)
