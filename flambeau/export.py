"""`torch.export`: programs as artefacts, which flambeau does not offer."""

from flambeau.core.absence import refused_names
from flambeau.core.nearest import missing_name

globals().update(
    refused_names(
        "export",
        """ExportedProgram Dim ShapesCollection export save load draft_export register_dataclass""",
        "programs are not exported",
        "Save model.state_dict() with torch.save.",
    )
)

__getattr__ = missing_name(__name__)
