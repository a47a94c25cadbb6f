"""`torch.onnx`: ONNX files, which flambeau does not offer."""

from flambeau.core.absence import refused_names
from flambeau.core.nearest import missing_name

globals().update(
    refused_names(
        "onnx",
        """ONNXProgram OnnxExporterError export""",
        "ONNX files are not written",
        "Save model.state_dict() with torch.save.",
    )
)

__getattr__ = missing_name(__name__)
