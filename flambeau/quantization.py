"""`torch.quantization`: quantised models, which flambeau does not offer."""

from flambeau.core.absence import refused_names
from flambeau.core.nearest import missing_name

globals().update(
    refused_names(
        "quantization",
        """QConfig QuantStub DeQuantStub prepare prepare_qat convert quantize quantize_dynamic
        quantize_qat get_default_qconfig get_default_qat_qconfig fuse_modules""",
        "models are not quantised",
        "Use amp.autocast with bfloat16 for smaller and faster arithmetic.",
    )
)

__getattr__ = missing_name(__name__)
