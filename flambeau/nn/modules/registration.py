"""What a module is made of: parameters, buffers and child modules kept in ordered tables.

Invariant: a name is in at most one of the tables and the instance's own attributes.
"""

from __future__ import annotations

from typing import Any

from flambeau.core.errors import ArgumentError, ValueRangeError, complaint
from flambeau.nn.modules.hooks import GLOBAL
from flambeau.nn.modules.tables import MODULE_TABLES, Tables, change_clock
from flambeau.nn.parameter import Buffer, Parameter
from flambeau.tensor import Tensor


def check_name(owner: Any, kind: str, name: Any, table: dict) -> None:
    """Refuse names that state_dict keys could not express and names already taken."""
    operation = f"register_{kind}"
    if not isinstance(name, str):
        raise ArgumentError(complaint(operation, "name must be a str", {"name": repr(name)}))
    if name == "" or "." in name:
        rule = f'a {kind} name must be non-empty and must not contain "."'
        raise KeyError(complaint(operation, rule, {"name": repr(name)}))
    if hasattr(owner, name) and name not in table:
        rule = f"a {kind} name must be free; the attribute '{name}' already exists"
        raise KeyError(complaint(operation, rule, {"module": type(owner).__name__}))


def before_init(kind: str) -> AttributeError:
    """The error for assigning to a module whose base class was not initialised."""
    return AttributeError(
        complaint(
            "Module",
            f"cannot assign {kind} before Module.__init__() call",
            hint="Call super().__init__() first.",
        )
    )


class Registration(Tables):
    """The part of Module that sets, finds and deletes attributes."""

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a tensor that is not a parameter; a persistent one is part of state_dict."""
        if "_buffers" not in self.__dict__:
            raise before_init("buffer")
        check_name(self, "buffer", name, self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise ArgumentError(
                complaint("register_buffer", "a Tensor or None is expected", {name: type(tensor)})
            )
        for hook in GLOBAL.buffer_registration.values():
            replaced = hook(self, name, tensor)
            tensor = tensor if replaced is None else replaced
        self._buffers[name] = tensor
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)
        self._touch()

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter; None reserves the name."""
        if "_parameters" not in self.__dict__:
            raise before_init("parameter")
        check_name(self, "parameter", name, self._parameters)
        if param is not None:
            self._check_parameter(name, param)
            for hook in GLOBAL.parameter_registration.values():
                replaced = hook(self, name, param)
                param = param if replaced is None else replaced
        self._parameters[name] = param
        self._touch()

    @staticmethod
    def _check_parameter(name: str, param: Any) -> None:
        if not isinstance(param, Parameter):
            raise ArgumentError(
                complaint(
                    "register_parameter",
                    "a flambeau.nn.Parameter or None is expected",
                    {name: type(param)},
                    "Wrap the tensor: nn.Parameter(tensor).",
                )
            )
        if param.grad_fn is not None:
            raise ValueRangeError(
                complaint(
                    "register_parameter",
                    "a parameter must be a leaf tensor",
                    {name: f"the result of {param.grad_fn}"},
                    "To express it by other parameters compute it in forward().",
                )
            )

    def add_module(self, name: str, module: Any) -> None:
        """Add a child module; None reserves the name."""
        if module is not None and not isinstance(module, Registration):
            raise ArgumentError(
                complaint("add_module", "a Module subclass is expected", {"got": type(module)})
            )
        check_name(self, "module", name, self._modules)
        self._modules[name] = self._announced(name, module)
        self._touch()

    def register_module(self, name: str, module: Any) -> None:
        """The same as add_module."""
        self.add_module(name, module)

    def _announced(self, name: str, module: Any) -> Any:
        """module, after the global registration hooks have seen it and perhaps replaced it."""
        for hook in GLOBAL.module_registration.values():
            replaced = hook(self, name, module)
            module = module if replaced is None else replaced
        return module

    def __setattr__(self, name: str, value: Any) -> None:
        state = self.__dict__
        change_clock[0] += 1
        state["_changed_at"] = change_clock[0]
        if isinstance(value, Parameter):
            self._drop(name, keep="_parameters", kind="parameters")
            self.register_parameter(name, value)
        elif isinstance(value, Registration):
            self._drop(name, keep="_modules", kind="module")
            state["_modules"][name] = self._announced(name, value)
        elif isinstance(value, Buffer):
            self._drop(name, keep="_buffers", kind="buffer")
            self.register_buffer(name, value, value.persistent)
        elif not self._assign_registered(name, value):
            object.__setattr__(self, name, value)

    def _drop(self, name: str, keep: str, kind: str) -> None:
        """Remove name from everywhere but the table `keep`."""
        state = self.__dict__
        if keep not in state:
            raise before_init(kind)
        state.pop(name, None)
        for table in MODULE_TABLES:
            if table != keep:
                state[table].pop(name, None)
        if keep != "_buffers":
            state["_non_persistent_buffers_set"].discard(name)

    def _assign_registered(self, name: str, value: Any) -> bool:
        """Assign to a name that is registered already; False if it is not.

        A buffer takes any tensor; a parameter or child can only be cleared with None.
        """
        state = self.__dict__
        if name in state.get("_parameters", ()):
            expected, table = "Parameter", "_parameters"
        elif name in state.get("_modules", ()):
            expected, table = "Module", "_modules"
        elif name in state.get("_buffers", ()):
            expected, table = "Tensor", "_buffers"
        else:
            return False
        if value is not None and not (expected == "Tensor" and isinstance(value, Tensor)):
            raise ArgumentError(
                complaint(
                    f"{type(self).__name__}.{name}",
                    f"cannot assign '{type(value).__name__}'; a {expected} or None is expected",
                )
            )
        if table == "_buffers":
            self.register_buffer(name, value, name not in state["_non_persistent_buffers_set"])
        else:
            state[table][name] = value
        return True

    def __getattr__(self, name: str) -> Any:
        state = self.__dict__
        for table in ("_parameters", "_buffers", "_modules"):
            if table in state and name in state[table]:
                return state[table][name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __delattr__(self, name: str) -> None:
        self._touch()
        for table in MODULE_TABLES:
            if name in self.__dict__[table]:
                del self.__dict__[table][name]
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        names = {*dir(type(self)), *self.__dict__}
        for table in MODULE_TABLES:
            names.update(self.__dict__.get(table, ()))
        return sorted(name for name in names if not name[0].isdigit())
