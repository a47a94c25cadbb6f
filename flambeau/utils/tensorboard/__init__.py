"""`torch.utils.tensorboard`: event files for TensorBoard, which flambeau does not write."""

from flambeau.core.absence import refused_names
from flambeau.core.nearest import missing_name

globals().update(
    refused_names(
        "utils.tensorboard",
        "SummaryWriter FileWriter RecordWriter",
        "event files are not written",
        "Print the values, or write them with the packages tensorboardX or csv.",
    )
)

__getattr__ = missing_name(__name__)
