"""`torch.nested`: ragged batches, which flambeau does not offer."""

from flambeau.core.absence import refused_names
from flambeau.core.nearest import missing_name

globals().update(
    refused_names(
        "nested",
        """nested_tensor as_nested_tensor nested_tensor_from_jagged to_padded_tensor""",
        "ragged tensors are not offered",
        "Pad with nn.utils.rnn.pad_sequence, and pass a mask.",
    )
)

__getattr__ = missing_name(__name__)
