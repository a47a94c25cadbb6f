"""`torch.linalg`: decompositions, solvers and norms over NumPy's LAPACK, batched."""

from flambeau.core.errors import LinAlgError
from flambeau.core.nearest import missing_name as _missing_name
from flambeau.linalg import (
    factoring as _factoring,
)
from flambeau.linalg import (
    inverting as _inverting,
)
from flambeau.linalg import (
    legacy as _legacy,
)
from flambeau.linalg import (
    low_rank as _low_rank,
)
from flambeau.linalg import (
    norms as _norms,
)
from flambeau.linalg import (
    powers as _powers,
)
from flambeau.linalg import (
    solving as _solving,
)
from flambeau.linalg import (
    spectra as _spectra,
)
from flambeau.tensor import vectors as _vectors
from flambeau.tensor.public import FUNCTIONS as _FUNCTIONS

globals().update(_FUNCTIONS["linalg"])
__getattr__ = _missing_name(__name__)
