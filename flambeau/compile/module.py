"""`compile(module)`: a module that runs another one compiled."""

from __future__ import annotations

import copy
from typing import Any

from flambeau.capture.capture import Options
from flambeau.capture.interpreter.run import CODE_HANDLERS
from flambeau.compile.compiled import compiled
from flambeau.nn import Module


class OptimizedModule(Module):
    """Behaves as the original, whose parameters, mode and attributes it shows as its own."""

    def __init__(self, original: Module, options: Options):
        super().__init__()
        self._orig_mod = original
        self.__dict__["_options"] = options
        self.__dict__["_call"] = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        call = self.__dict__["_call"]
        if call is None:
            call = self.__dict__["_call"] = compiled(self._orig_mod, self.__dict__["_options"])
        return call(*args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name == "_orig_mod":
            return self.__dict__["_modules"]["_orig_mod"]
        return getattr(self.__dict__["_modules"]["_orig_mod"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        if "_orig_mod" in self.__dict__.get("_modules", {}) and name != "_orig_mod":
            if name == "training":
                object.__setattr__(self, name, value)
            setattr(self.__dict__["_modules"]["_orig_mod"], name, value)
        else:
            super().__setattr__(name, value)

    def train(self, mode: bool = True) -> OptimizedModule:
        self.__dict__["training"] = mode
        self._orig_mod.train(mode)
        return self

    def __len__(self) -> int:
        return len(self._orig_mod)  # type: ignore[arg-type]

    def __iter__(self) -> Any:
        return iter(self._orig_mod)  # type: ignore[call-overload]

    def __getitem__(self, key: Any) -> Any:
        return self._orig_mod[key]  # type: ignore[index]

    def __dir__(self) -> list[str]:
        return dir(self._orig_mod)

    def __getstate__(self) -> dict[str, Any]:
        return dict(self.__dict__, _call=None)

    def __reduce__(self) -> tuple:
        return OptimizedModule, (self._orig_mod, self.__dict__["_options"])

    def __deepcopy__(self, memo: dict) -> OptimizedModule:
        return OptimizedModule(copy.deepcopy(self._orig_mod, memo), self.__dict__["_options"])


def _call_original(run: Any, module: OptimizedModule, *args: Any, **kwargs: Any) -> Any:
    """Captured code that calls a compiled module captures the module too."""
    return run.call(run.attributes.get(module, "_orig_mod"), args, kwargs)


CODE_HANDLERS[OptimizedModule.__call__.__code__] = _call_original
