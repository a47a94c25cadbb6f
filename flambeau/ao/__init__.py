"""`torch.ao`: quantised models, which flambeau does not offer."""

import flambeau.quantization as quantization
from flambeau.core.nearest import missing_name

__getattr__ = missing_name(__name__)
