"""flambeau: PyTorch's programming model, every kernel generated through LLVM.

`import flambeau as torch` and a training script runs.
"""

from __future__ import annotations

import importlib as _importlib
from functools import partial as _partial
from math import e, inf, nan, pi

from flambeau import ops as _ops
from flambeau.autograd import engine as _engine
from flambeau.autograd import methods as _autograd_methods
from flambeau.autograd import record as _record
from flambeau.autograd.modes import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from flambeau.core import context as _context
from flambeau.core import dtype as _dtypes
from flambeau.core import places as _places
from flambeau.core.device import device
from flambeau.core.dtype import dtype, finfo, iinfo, promote_types
from flambeau.core.nearest import missing_name as _missing_name
from flambeau.core.spec import Size
from flambeau.eager.executor import EagerExecutor as _EagerExecutor
from flambeau.eager.native import providers as _providers
from flambeau.functional import families as _families
from flambeau.random import (
    Generator,
    default_generator,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)
from flambeau.random import (
    functions as _random_functions,
)
from flambeau.tensor import (
    arithmetic,
    calculus,
    choosing,
    comparing,
    complexes,
    contractions,
    conversion,
    copies,
    counting,
    elementary,
    extrema,
    factories,
    indexing,
    inspection,
    interop,
    joining,
    operators,
    ordering,
    pickling,
    printing,
    products,
    rearranging,
    reducing,
    representing,
    resizing,
    return_types,
    scalars,
    scanning,
    scattering,
    shaping,
    sparse_forms,
    statistics,
)
from flambeau.tensor import deferred as _deferred
from flambeau.tensor import (
    special as _special,
)
from flambeau.tensor.inspection import (
    can_cast,
    get_default_device,
    get_default_dtype,
    set_default_device,
    set_default_dtype,
    set_default_tensor_type,
)
from flambeau.tensor.layout import (
    channels_last,
    channels_last_3d,
    contiguous_format,
    layout,
    memory_format,
    preserve_format,
    sparse_coo,
    sparse_csr,
    strided,
)
from flambeau.tensor.printing import get_printoptions, set_printoptions
from flambeau.tensor.public import FUNCTIONS as _FUNCTIONS
from flambeau.tensor.public import LOADERS as _LOADERS
from flambeau.tensor.tensor import Tensor
from flambeau.version import __version__

_providers.install()
_context.install(_record.dispatch, _record.dispatch_inplace, _EagerExecutor())
globals().update({d.name: d for d in _dtypes.ALL})
globals().update(_dtypes.ALIASES)
globals().update(_FUNCTIONS[""])
newaxis = None
for _name in ("addmv_", "as_strided_", "index_put_", "resize_as_"):
    globals()[_name] = getattr(Tensor, _name)

for _module in ("fft", "linalg", "signal"):
    _LOADERS[_module] = _partial(_importlib.import_module, f"flambeau.{_module}")
_LOADERS["operators"] = _partial(_importlib.import_module, "flambeau.functional.operators")
_ops.NAMESPACES["aten"] = lambda: _LOADERS["operators"]().aten

_PLACES = dict(_places.PLACES)
for (_, _home), _names in _deferred.HOMES.items():
    _PLACES.update(dict.fromkeys(_names, _home))


_missing = _missing_name(__name__)


def __getattr__(name: str):
    """Names whose modules are imported when they are first used."""
    if name in _places.SUBMODULES:
        return _importlib.import_module(f"flambeau.{name}")
    if name in _PLACES:
        value = getattr(_importlib.import_module(_PLACES[name]), name)
        globals()[name] = value
        return value
    return _missing(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_PLACES, *_places.SUBMODULES})
