"""`torch.fft`: discrete Fourier transforms, their frequencies and shifts."""

from flambeau.core.nearest import missing_name as _missing_name
from flambeau.fft import (
    frequencies as _frequencies,
)
from flambeau.fft import (
    spectrograms as _spectrograms,
)
from flambeau.fft import (
    transforms as _transforms,
)
from flambeau.tensor.public import FUNCTIONS as _FUNCTIONS

globals().update(_FUNCTIONS["fft"])
__getattr__ = _missing_name(__name__)
