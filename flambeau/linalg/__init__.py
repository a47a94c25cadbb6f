"""`torch.linalg`: decompositions, solvers and norms over NumPy's LAPACK."""

from flambeau.tensor import vectors as _products
from flambeau.tensor.public import FUNCTIONS as _FUNCTIONS

globals().update(_FUNCTIONS["linalg"])
