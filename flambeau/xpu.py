"""`torch.xpu`: Intel GPUs, of which there are none."""

from flambeau.core.nearest import missing_name
from flambeau.devices.absent import namespace

globals().update(namespace("xpu"))

__getattr__ = missing_name(__name__)
