"""The version of this package, read by the build, `flambeau --version` and `torch.version`."""

__version__ = "0.1.0"

cuda: str | None = None
hip: str | None = None
xpu: str | None = None
git_version = "Unknown"
debug = False
