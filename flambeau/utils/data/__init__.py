"""`torch.utils.data`: everything public of `flambeau.data`, the same objects."""

from flambeau.core.nearest import missing_name
from flambeau.data import *
from flambeau.data import __all__ as __all__
from flambeau.data.collate import collate, default_collate_fn_map
from flambeau.data.worker import WorkerInfo
from flambeau.utils.data import _utils, dataloader, dataset, distributed, sampler

__getattr__ = missing_name(__name__)
