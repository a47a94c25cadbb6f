"""`import torch` gives flambeau: for programs that must stay as they are.

    import flambeau.alias
    flambeau.alias.install()
    import torch                      # is flambeau
    from torch import nn              # is flambeau.nn

`flambeau run script.py` does the same before it runs the script.
"""

from flambeau.alias.finder import install, uninstall

__all__ = ["install", "uninstall"]
