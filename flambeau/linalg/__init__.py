"""`torch.linalg`: decompositions, solvers and norms over NumPy's LAPACK, batched."""

from flambeau.core.errors import LinAlgError  # noqa: F401
from flambeau.core.nearest import missing_name as _missing_name
from flambeau.linalg import (  # noqa: F401
    factoring as _factoring,
    inverting as _inverting,
    legacy as _legacy,
    low_rank as _low_rank,
    norms as _norms,
    powers as _powers,
    solving as _solving,
    spectra as _spectra,
)
from flambeau.tensor import vectors as _vectors  # noqa: F401
from flambeau.tensor.public import FUNCTIONS as _FUNCTIONS

globals().update(_FUNCTIONS["linalg"])
__getattr__ = _missing_name(__name__)
