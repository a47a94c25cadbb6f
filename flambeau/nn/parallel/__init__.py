"""Running one module on several devices from one process."""

from flambeau.core.absence import refused_class
from flambeau.nn.parallel.data_parallel import DataParallel, data_parallel

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel"]

DistributedDataParallel = refused_class(
    "nn.parallel.DistributedDataParallel",
    "processes cannot work together yet",
    "Use the module itself in one process.",
)
