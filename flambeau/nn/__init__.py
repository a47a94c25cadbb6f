"""Neural network modules under PyTorch's names."""

from flambeau.core.nearest import missing_name
from flambeau.nn import attention, functional, init, modules, parallel, utils
from flambeau.nn.modules import *
from flambeau.nn.parallel import DataParallel
from flambeau.nn.parameter import (
    Buffer,
    Parameter,
    UninitializedBuffer,
    UninitializedParameter,
)

__all__ = [
    "Buffer",
    "DataParallel",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "attention",
    "functional",
    "init",
    "modules",
    "parallel",
    "utils",
]
__all__ += modules.__all__

__getattr__ = missing_name(__name__)
