"""`torch.hub`: models from the network. flambeau runs no code that it downloads."""

from __future__ import annotations

import os
from pathlib import Path

from flambeau.core.absence import refused_function
from flambeau.core.nearest import missing_name

_folder: list[str] = []


def get_dir() -> str:
    """Where downloaded weights would be kept: $TORCH_HOME/hub, or in the user's cache."""
    if _folder:
        return _folder[0]
    cache = os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache"))
    return os.path.join(os.environ.get("TORCH_HOME", os.path.join(cache, "torch")), "hub")


def set_dir(d: str | os.PathLike[str]) -> None:
    """Keep downloaded weights somewhere else."""
    _folder[:] = [os.path.expanduser(d)]


_CODE = "Get the model's Python file yourself, and load its weights with torch.load."
_FILE = "Download the file yourself, and load it with torch.load."
_MUST = "flambeau downloads nothing"
load, list, help = (refused_function(f"hub.{n}", _MUST, _CODE) for n in ("load", "list", "help"))
load_state_dict_from_url = refused_function("hub.load_state_dict_from_url", _MUST, _FILE)
download_url_to_file = refused_function("hub.download_url_to_file", _MUST, _FILE)

__getattr__ = missing_name(__name__)
