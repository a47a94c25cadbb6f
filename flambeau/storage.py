"""`torch.storage`: a tensor's memory as an object of its own."""

from flambeau.core.nearest import missing_name
from flambeau.tensor.storages import TypedStorage as TypedStorage
from flambeau.tensor.storages import UntypedStorage as UntypedStorage

__getattr__ = missing_name(__name__)
