"""`torch.linalg`: decompositions, solvers and norms over NumPy's LAPACK."""

from flambeau.linalg import products as _products  # noqa: F401
from flambeau.tensor.public import FUNCTIONS as _FUNCTIONS

globals().update(_FUNCTIONS["linalg"])
