"""`torch.library`: functions of one's own that behave like built-in ones.

A custom op is opaque to `compile`: it runs as it is. Its gradient is what `register_autograd` says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

import flambeau.ops as _namespaces
from flambeau.autograd.function import Function
from flambeau.core.absence import refused_class
from flambeau.core.errors import OpError, ValueRangeError, complaint
from flambeau.core.nearest import missing_name
from flambeau.tensor import Tensor
from flambeau.tensor.overrides import handle, switch

_DEFINED: dict[str, CustomOpDef] = {}


class CustomOpDef:
    """A function with a name, "namespace::name", and what was registered for it."""

    def __init__(self, name: str, fn: Callable, mutates_args: Any = ()):
        self._qualname = name
        self._kernels: dict[Any, Any] = {None: fn}
        self.__name__ = self.__qualname__ = name.partition("::")[2]
        self.__doc__ = fn.__doc__
        self._mutates = mutates_args
        self._fake = self._backward = self._setup = self._vmap = None

    def register_fake(self, fn: Callable, /) -> Callable:
        """The function that makes empty results of the right shape, on meta tensors."""
        self._fake = fn  # type: ignore[assignment]
        return fn

    def register_kernel(self, device_types: Any, fn: Callable | None = None, /) -> Callable:
        """The function for tensors on these devices."""

        def register(fn: Callable) -> Callable:
            kinds: list[Any] = [None]
            if device_types:
                kinds = [device_types] if isinstance(device_types, str) else list(device_types)
            self._kernels.update(dict.fromkeys(kinds, fn))
            return fn

        return register if fn is None else register(fn)

    def register_autograd(
        self, backward: Callable, /, *, setup_context: Callable | None = None
    ) -> None:
        """backward(ctx, *gradients) -> a gradient for each input; setup_context(ctx, inputs,
        output) keeps what it needs."""
        self._backward, self._setup = backward, setup_context  # type: ignore[assignment]

    def register_vmap(self, func: Callable | None = None, /) -> Callable:
        """Kept: `vmap` maps a custom op slice by slice."""
        return func if func is not None else lambda f: f

    def register_torch_dispatch(self, torch_dispatch_class: Any, fn: Any = None, /) -> Callable:
        """Kept, and without effect."""
        return fn if fn is not None else lambda f: f

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if switch.active:
            result = handle(self, args, kwargs)
            if result is not NotImplemented:
                return result
        if self._backward is None:
            return self._run(*args, **kwargs)
        return _Differentiable.apply(self, kwargs, *args)

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        kinds = [a.device.type for a in args if isinstance(a, Tensor)]
        if "meta" in kinds and self._fake is not None:
            return self._fake(*args, **kwargs)
        fn = self._kernels.get(kinds[0] if kinds else "cpu") or self._kernels[None]
        return fn(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"


class _Differentiable(Function):
    """A custom op with the gradient that was registered."""

    @staticmethod
    def forward(ctx: Any, op: CustomOpDef, kwargs: dict, *args: Any) -> Any:
        output = op._run(*args, **kwargs)
        ctx.op = op
        if op._setup is not None:
            setup: Any = op._setup
            setup(ctx, args, output)
        return output

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        found = ctx.op._backward(ctx, *gradients)
        return None, None, *(found if isinstance(found, tuple) else (found,))


def custom_op(
    name: str,
    fn: Callable | None = None,
    /,
    *,
    mutates_args: str | Iterable[str] = (),
    device_types: Any = None,
    schema: str | None = None,
    tags: Any = None,
) -> Any:
    """Make a function an op called "namespace::name", also found at `torch.ops.namespace.name`."""
    namespace, _, leaf = name.partition("::")
    if not namespace.isidentifier() or not leaf.isidentifier():
        must = "the name must be 'namespace::name'"
        raise ValueRangeError(complaint("library.custom_op", must, {"name": repr(name)}))

    def define(fn: Callable) -> CustomOpDef:
        made = CustomOpDef(name, fn, mutates_args)
        _DEFINED[name] = made
        space = vars(_namespaces).setdefault(namespace, SimpleNamespace())
        setattr(space, leaf, made)
        return made

    return define if fn is None else define(fn)


triton_op = custom_op


def _found(op: Any) -> CustomOpDef:
    if isinstance(op, CustomOpDef):
        return op
    if op not in _DEFINED:
        must = "the op must have been defined by custom_op"
        raise OpError(complaint("library", must, {"op": repr(op)}))
    return _DEFINED[op]


def register_fake(op: Any, func: Callable | None = None, /, **options: Any) -> Any:
    """See `CustomOpDef.register_fake`."""
    return _found(op).register_fake if func is None else _found(op).register_fake(func)


impl_abstract = register_fake


def register_kernel(op: Any, device_types: Any, func: Callable | None = None, /, **_: Any) -> Any:
    """See `CustomOpDef.register_kernel`."""
    return _found(op).register_kernel(device_types, func)


def register_autograd(
    op: Any, backward: Callable, /, *, setup_context: Callable | None = None, lib: Any = None
) -> None:
    """See `CustomOpDef.register_autograd`."""
    _found(op).register_autograd(backward, setup_context=setup_context)


def register_vmap(op: Any, func: Callable | None = None, /, **_: Any) -> Any:
    """See `CustomOpDef.register_vmap`."""
    return _found(op).register_vmap(func)


Library = refused_class(
    "library.Library", "ops are not defined by schema", "Use library.custom_op on a function."
)

__getattr__ = missing_name(__name__)
