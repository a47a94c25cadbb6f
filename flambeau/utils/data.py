"""`torch.utils.data`: everything public of `flambeau.data`, the same objects."""

from flambeau.data import *  # noqa: F403
from flambeau.data import __all__ as __all__
from flambeau.data.collate import collate, default_collate_fn_map  # noqa: F401
from flambeau.data.worker import WorkerInfo  # noqa: F401
