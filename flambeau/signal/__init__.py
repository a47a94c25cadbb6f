"""`torch.signal`: windows."""

from flambeau.core.nearest import missing_name as _missing_name
from flambeau.signal import lengths as _lengths
from flambeau.signal import windows

__getattr__ = _missing_name(__name__)
