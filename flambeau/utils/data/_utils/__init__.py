"""`torch.utils.data._utils`: private there, but programs extend its table of collate functions."""

from flambeau.utils.data._utils import collate
