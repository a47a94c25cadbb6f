"""`torch.utils.dlpack`: memory shared with other libraries."""

from flambeau.core.nearest import missing_name
from flambeau.tensor.foreign import from_dlpack as from_dlpack
from flambeau.tensor.foreign import to_dlpack as to_dlpack

__getattr__ = missing_name(__name__)
