"""`torch.utils.data.distributed`."""

from flambeau.data.distributed import DistributedSampler

__all__ = ["DistributedSampler"]
