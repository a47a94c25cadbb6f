"""`torch.package`: archives of code, which flambeau does not offer."""

from flambeau.core.absence import refused_names
from flambeau.core.nearest import missing_name

globals().update(
    refused_names(
        "package",
        """PackageExporter PackageImporter""",
        "code is not archived",
        "Ship the Python files, and the weights by torch.save.",
    )
)

__getattr__ = missing_name(__name__)
