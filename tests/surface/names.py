"""Which public names of PyTorch flambeau lacks: `python tests/surface/names.py` prints them all.

`used_names.txt` holds the names that programs use most, the most used first. `absent_names.txt`
holds, by namespace, what is left out on purpose: TorchScript's types, quantisation, kernels of
vendors' libraries, and modules that PyTorch's own files happen to import.
"""

import importlib
import types
import warnings
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
NAMESPACES = """torch torch.Tensor torch.nn torch.nn.functional torch.nn.init torch.nn.utils
    torch.optim torch.optim.lr_scheduler torch.utils.data torch.autograd torch.cuda torch.backends
    torch.backends.cuda torch.backends.mps torch.jit torch.compiler torch.random torch.testing
    torch.linalg torch.fft torch.special torch.func torch.amp torch.overrides torch.futures
    torch.signal.windows torch.cpu torch.accelerator torch.nn.utils.prune""".split()
BORROWED = {"typing", "collections", "functools", "contextlib", "typing_extensions", "abc", "enum"}


def used_names() -> list[str]:
    return (HERE / "used_names.txt").read_text().split()


def absent_names() -> dict[str, set[str]]:
    lines = (HERE / "absent_names.txt").read_text().splitlines()
    pairs = (line.partition(": ") for line in lines if line)
    return {namespace: set(names.split()) for namespace, _, names in pairs}


def found(root: Any, dotted: str) -> Any:
    """The object that a dotted name means in torch or in flambeau; AttributeError if none."""
    value = root
    for part in dotted.split(".")[1:]:
        if not hasattr(value, part) and isinstance(value, types.ModuleType):
            try:
                importlib.import_module(f"{value.__name__}.{part}")
            except ModuleNotFoundError:
                raise AttributeError(dotted) from None
        value = getattr(value, part)
    return value


def own_names(namespace: Any) -> list[str]:
    """Public names, without modules and types that only were imported there."""
    names = []
    for name in dir(namespace):
        value = None if name.startswith("_") else getattr(namespace, name, None)
        foreign = isinstance(value, types.ModuleType) and not value.__name__.startswith("torch.")
        home = getattr(value, "__module__", None)
        if name.startswith("_") or foreign or home in BORROWED or str(value).startswith("typing."):
            continue
        names.append(name)
    return names


def missing(torch: Any, ours: Any, namespace: str) -> list[str]:
    """The public names of torch's namespace that ours lacks."""
    here = found(ours, namespace)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [name for name in own_names(found(torch, namespace)) if not hasattr(here, name)]


if __name__ == "__main__":
    import torch

    import flambeau

    for namespace in NAMESPACES:
        names = missing(torch, flambeau, namespace)
        print(f"{namespace}: {' '.join(names)}")
