"""`torch.mtia`: Meta's accelerators, of which there are none."""

from flambeau.core.nearest import missing_name
from flambeau.devices.absent import namespace

globals().update(namespace("mtia"))

__getattr__ = missing_name(__name__)
