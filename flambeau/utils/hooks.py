"""`torch.utils.hooks`: what takes a hook off again."""

from flambeau.autograd.handles import RemovableHandle as RemovableHandle
from flambeau.core.nearest import missing_name

__getattr__ = missing_name(__name__)
