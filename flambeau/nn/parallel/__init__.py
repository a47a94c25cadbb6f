"""Running one module on several devices from one process."""

from flambeau.nn.parallel.data_parallel import DataParallel, data_parallel

__all__ = ["DataParallel", "data_parallel"]
