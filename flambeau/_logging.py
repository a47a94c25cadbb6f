"""`torch._logging`: what the compiler shows of its stages."""

from flambeau.core.logs import set_logs as set_logs
from flambeau.core.nearest import missing_name

__getattr__ = missing_name(__name__)
