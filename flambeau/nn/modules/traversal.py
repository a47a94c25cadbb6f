"""Walking the tree of modules: names, parameters, buffers, children, all as lazy generators.

Order is that of registration, parents before children; a shared object is met once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from flambeau.core.errors import ValueRangeError, complaint
from flambeau.nn.modules.tables import Tables
from flambeau.nn.parameter import Parameter
from flambeau.tensor import Tensor


class Traversal(Tables):
    """The part of Module that iterates over the tree below it and looks things up by path."""

    def _named_members(
        self,
        get_members_fn: Callable,
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        """(path, member) for the members that get_members_fn gives for every module."""
        seen: set[int] = set()
        owners = (
            self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
            if recurse
            else [(prefix, self)]
        )
        for path, module in owners:
            for name, member in get_members_fn(module):
                if member is None or id(member) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(member))
                yield (f"{path}.{name}" if path else name), member

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters of this module and, with recurse, of all below it."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """(path, parameter) pairs."""
        yield from self._named_members(
            lambda module: module._parameters.items(), prefix, recurse, remove_duplicate
        )

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers of this module and, with recurse, of all below it."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """(path, buffer) pairs."""
        yield from self._named_members(
            lambda module: module._buffers.items(), prefix, recurse, remove_duplicate
        )

    def children(self) -> Iterator[Any]:
        """The modules directly below this one."""
        for _, child in self.named_children():
            yield child

    def named_children(self) -> Iterator[tuple[str, Any]]:
        """(name, module) for the modules directly below this one."""
        seen: set[int] = set()
        for name, child in self._modules.items():
            if child is not None and id(child) not in seen:
                seen.add(id(child))
                yield name, child

    def modules(self) -> Iterator[Any]:
        """This module and all below it."""
        for _, module in self.named_modules():
            yield module

    def named_modules(
        self, memo: set | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """(path, module) for this module and all below it; memo holds those to leave out."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, child in self._modules.items():
            if child is not None:
                path = f"{prefix}.{name}" if prefix else name
                yield from child.named_modules(memo, path, remove_duplicate)

    def get_submodule(self, target: str) -> Any:
        """The module at a dotted path; "" is this module."""
        module: Any = self
        for name in target.split(".") if target else ():
            found = getattr(module, name, None)
            if found is None and not hasattr(module, name):
                raise self._no_such(target, f"{type(module).__name__} has no attribute '{name}'")
            if not isinstance(found, Traversal):
                raise self._no_such(target, f"'{name}' is not an nn.Module")
            module = found
        return module

    def set_submodule(self, target: str, module: Any, strict: bool = False) -> None:
        """Replace (or, unless strict, add) the module at a dotted path."""
        path, _, name = target.rpartition(".")
        if not name:
            raise ValueRangeError(
                complaint("set_submodule", "the path must not be empty", {"target": repr(target)})
            )
        if not isinstance(module, Traversal):
            raise ValueRangeError(
                complaint("set_submodule", "a Module is expected", {"module": type(module)})
            )
        parent = self.get_submodule(path)
        if strict and not hasattr(parent, name):
            raise self._no_such(target, f"{type(parent).__name__} has no attribute '{name}'")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), Traversal):
            raise self._no_such(target, f"'{name}' is not an nn.Module")
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a dotted path."""
        return self._get_member(target, Parameter, "an nn.Parameter")

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a dotted path."""
        path, _, name = target.rpartition(".")
        owner = self.get_submodule(path)
        buffer = self._get_member(target, Tensor, "a buffer")
        if name not in owner._buffers:
            raise self._no_such(target, f"'{name}' is not a buffer")
        return buffer

    def _get_member(self, target: str, kind: type, called: str) -> Any:
        path, _, name = target.rpartition(".")
        owner = self.get_submodule(path)
        if not hasattr(owner, name):
            raise self._no_such(target, f"{type(owner).__name__} has no attribute '{name}'")
        member = getattr(owner, name)
        if not isinstance(member, kind):
            raise self._no_such(target, f"'{name}' is not {called}")
        return member

    def _no_such(self, target: str, why: str) -> AttributeError:
        return AttributeError(complaint(type(self).__name__, why, {"path": repr(target)}))

    def apply(self, fn: Callable[[Any], None]) -> Any:
        """fn(module) for all modules below and then this one; returns this one."""
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    def train(self, mode: bool = True) -> Any:
        """Set training mode here and below; returns this module."""
        if not isinstance(mode, bool):
            raise ValueRangeError(
                complaint("train", "training mode must be a bool", {"mode": repr(mode)})
            )
        self.training = mode
        for child in self.children():
            child.train(mode)
        return self

    def eval(self) -> Any:
        """Set evaluation mode here and below; the same as train(False)."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Whether autograd records what is done with the parameters; returns this module."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters, or fill them with zeros."""
        for parameter in self.parameters():
            if parameter.grad is None:
                continue
            if set_to_none:
                parameter.grad = None
            else:
                parameter.grad = parameter.grad.detach().zero_()
