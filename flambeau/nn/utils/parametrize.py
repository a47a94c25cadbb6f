"""Parameters computed from other parameters by modules: w = f(original).

A parametrized module gets a class of its own, in which the parameter's name is a property that
runs f; the originals live in module.parametrizations.<name>.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

from flambeau.autograd.modes import no_grad
from flambeau.core.errors import OpError, ValueRangeError, complaint
from flambeau.nn.modules.container import ModuleDict, ModuleList
from flambeau.nn.modules.module import Module
from flambeau.nn.parameter import Parameter
from flambeau.tensor import Tensor

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]


class Cache:
    """Values of parametrized tensors while `cached()` blocks are open."""

    depth = 0
    values: dict[tuple[int, str], Tensor] = {}


@contextmanager
def cached() -> Iterator[None]:
    """Within the block every parametrized tensor is computed once, at its first use."""
    Cache.depth += 1
    try:
        yield
    finally:
        Cache.depth -= 1
        if not Cache.depth:
            Cache.values = {}


class ParametrizationList(ModuleList):
    """The modules that compute one tensor, applied in order, and the originals they start from.

    One original is called `original`; if right_inverse gave several they are original0, ...
    """

    original: Tensor
    unsafe: bool

    def __init__(
        self, modules: list[Module], original: Tensor | Parameter, unsafe: bool = False
    ) -> None:
        if not modules:
            raise ValueRangeError(complaint("ParametrizationList", "modules must not be empty"))
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype = original.shape, original.dtype
        with no_grad():
            new = self._inverted(original)
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        if self.is_tensor:
            self._check_same_dtype("original", original.dtype, new)
            with no_grad():
                original.data = new.data
            self._register("original", original)
        else:
            for i, part in enumerate(new):
                self._check_is_tensor(f"right_inverse[{i}]", part)
                if isinstance(original, Parameter):
                    part = Parameter(part, original.requires_grad)
                part.requires_grad_(original.requires_grad)
                self._register(f"original{i}", part)
        if not unsafe:
            value = self()
            self._check_is_tensor("forward", value)
            self._check_same_dtype("forward", dtype, value)
            if value.shape != shape:
                raise ValueRangeError(
                    complaint(
                        "register_parametrization",
                        "a parametrization must not change the shape (unless unsafe=True)",
                        {"before": tuple(shape), "after": tuple(value.shape)},
                    )
                )

    def _inverted(self, original: Tensor) -> Any:
        """original, taken back through all modules that have a right_inverse."""
        value: Any = original
        try:
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    value = module.right_inverse(value)
        except NotImplementedError:  # a module may have one for some of its settings only
            return original
        if isinstance(value, Tensor):
            return value
        if not isinstance(value, (list, tuple)):
            raise ValueRangeError(
                complaint("right_inverse", "Tensors are expected", {"got": type(value)})
            )
        return list(value)

    def _register(self, name: str, value: Tensor) -> None:
        if isinstance(value, Parameter):
            self.register_parameter(name, value)
        else:
            self.register_buffer(name, value)

    @staticmethod
    def _check_is_tensor(what: str, value: Any) -> None:
        if not isinstance(value, Tensor):
            raise ValueRangeError(complaint(what, "a Tensor is expected", {"type": type(value)}))

    def _check_same_dtype(self, what: str, dtype: Any, value: Tensor) -> None:
        if value.dtype != dtype and not (self.unsafe and what == "forward"):
            raise ValueRangeError(
                complaint(
                    "register_parametrization",
                    f"{what} must keep the dtype",
                    {"before": dtype, "after": value.dtype},
                )
            )

    def _originals(self) -> list[Tensor]:
        if self.is_tensor:
            return [self.original]
        return [getattr(self, f"original{i}") for i in range(self.ntensors)]

    def right_inverse(self, value: Tensor) -> None:
        """Set the originals so that the parametrized tensor becomes value."""
        with no_grad():
            new = value
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise OpError(
                        complaint(
                            "right_inverse",
                            "every parametrization must have right_inverse to assign to it",
                            {"missing in": type(module).__name__},
                        )
                    )
                new = module.right_inverse(new)
            parts = [new] if self.is_tensor else list(new)
            if len(parts) != self.ntensors:
                raise ValueRangeError(
                    complaint(
                        "right_inverse",
                        f"{self.ntensors} tensors are expected",
                        {"got": len(parts)},
                    )
                )
            for original, part in zip(self._originals(), parts, strict=True):
                self._check_is_tensor("right_inverse", part)
                self._check_same_dtype("right_inverse", original.dtype, part)
                original.data = part.data if part is not value else part.detach().clone()

    def forward(self) -> Tensor:
        first, *rest = list(self)
        value = first(*self._originals())
        for module in rest:
            value = module(value)
        return value


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether module has parametrizations, or one of tensor_name."""
    parametrizations = getattr(module, "parametrizations", None)
    if not isinstance(parametrizations, ModuleDict):
        return False
    return len(parametrizations) > 0 if tensor_name is None else tensor_name in parametrizations


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Compute module's parameter or buffer by `parametrization` from now on; returns module.

    A second one is applied after the first. With right_inverse the parameter keeps its value and
    can be assigned to.
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        add_another(module, tensor_name, parametrization, unsafe)
    elif tensor_name in module._parameters or tensor_name in module._buffers:
        original = getattr(module, tensor_name)
        entries = ParametrizationList([parametrization], original, unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            give_own_class(module)
            module.parametrizations = ModuleDict()
        add_property(module, tensor_name)
        module.parametrizations[tensor_name] = entries
    else:
        raise ValueRangeError(
            complaint(
                "register_parametrization",
                "the name must be that of a parameter, buffer or parametrized tensor",
                {"name": tensor_name, "module": type(module).__name__},
            )
        )
    return module


def add_another(module: Module, name: str, parametrization: Module, unsafe: bool) -> None:
    """Apply a further parametrization to an already parametrized tensor."""
    entries = module.parametrizations[name]
    if not unsafe:
        value = getattr(module, name)
        result = parametrization(value)
        if not isinstance(result, Tensor):
            raise ValueRangeError(
                complaint(
                    "register_parametrization", "a Tensor is expected", {"type": type(result)}
                )
            )
        for what in ("dtype", "shape"):
            before, after = getattr(value, what), getattr(result, what)
            if before != after:
                raise ValueRangeError(
                    complaint(
                        "register_parametrization",
                        f"a parametrization must keep the {what} (unless unsafe=True)",
                        {"before": before, "after": after},
                    )
                )
        if hasattr(parametrization, "right_inverse"):
            before = parametrization.right_inverse(value)
            if not isinstance(before, Tensor) or before.shape != value.shape:
                raise ValueRangeError(
                    complaint(
                        "register_parametrization",
                        "right_inverse of a further parametrization must give a tensor like its "
                        "input",
                    )
                )
    entries.append(parametrization)
    entries.unsafe |= unsafe


def give_own_class(module: Module) -> None:
    """Derive a class for this one module, whose properties do not show in others."""
    cls = type(module)

    def getstate(self: Module) -> dict:
        raise OpError(
            complaint(
                "pickle",
                "a parametrized module can only be saved through its state_dict",
                {"module": cls.__name__},
            )
        )

    def copied(self: Module, memo: dict) -> Module:
        if id(self) in memo:
            return memo[id(self)]
        replica = self.__new__(type(self))
        memo[id(self)] = replica
        replica.__dict__ = deepcopy(self.__dict__, memo)
        return replica

    namespace: dict[str, Any] = {"__getstate__": getstate}
    if not hasattr(cls, "__deepcopy__"):
        namespace["__deepcopy__"] = copied
    module.__class__ = type(f"Parametrized{cls.__name__}", (cls,), namespace)


def computed(module: Module, name: str) -> Tensor:
    """The parametrized tensor; an AttributeError inside must not look like a missing name."""
    try:
        return module.parametrizations[name]()
    except AttributeError as error:
        raise OpError(
            complaint(
                f"{type(module).__name__}.{name}",
                "its parametrization failed",
                {"error": repr(error)},
            )
        ) from error


def add_property(module: Module, name: str) -> None:
    """Let the module's own class compute `name` by its parametrizations."""

    def get(self: Module) -> Tensor:
        if not Cache.depth:
            return computed(self, name)
        key = (id(self), name)
        if key not in Cache.values:
            Cache.values[key] = computed(self, name)
        return Cache.values[key]

    def put(self: Module, value: Tensor) -> None:
        self.parametrizations[name].right_inverse(value)

    setattr(type(module), name, property(get, put))


def remove_parametrizations(
    module: Module, tensor_name: str, leave_parametrized: bool = True
) -> Module:
    """Make the tensor an ordinary one again: the computed value, or else the original."""
    if not is_parametrized(module, tensor_name):
        raise ValueRangeError(
            complaint(
                "remove_parametrizations",
                "the tensor must be parametrized",
                {"name": tensor_name, "module": type(module).__name__},
            )
        )
    entries = module.parametrizations[tensor_name]
    if not leave_parametrized and not entries.is_tensor:
        raise ValueRangeError(
            complaint(
                "remove_parametrizations",
                "leave_parametrized=False needs a single original tensor",
                {"tensors": entries.ntensors},
            )
        )
    if entries.is_tensor:
        tensor = entries.original
        if leave_parametrized:
            with no_grad():
                tensor.data = getattr(module, tensor_name).detach().clone()
    else:
        value = getattr(module, tensor_name)
        needs_grad = any(original.requires_grad for original in entries._originals())
        tensor = Parameter(value.detach().clone()) if needs_grad else value
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    if isinstance(tensor, Parameter):
        module.register_parameter(tensor_name, tensor)
    else:
        module.register_buffer(tensor_name, tensor)
    if not is_parametrized(module):
        delattr(module, "parametrizations")
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Module) -> type:
    """The class that the module had before it was parametrized."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Give to_module the parametrizations of from_module, and their originals' values."""
    if not is_parametrized(from_module):
        return to_module
    names = list(from_module.parametrizations) if tensor_name is None else [tensor_name]
    for name in names:
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name).detach().clone()))
        source = from_module.parametrizations[name]
        for parametrization in source:
            register_parametrization(to_module, name, parametrization)
        target = to_module.parametrizations[name]
        for old, new in zip(source._originals(), target._originals(), strict=True):
            with no_grad():
                new.data = old.detach().clone()
    return to_module
