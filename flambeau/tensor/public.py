"""`@public`: from one Python function to every spelling of it that PyTorch has.

    @public(inplace=True)
    def add(input, other, *, alpha=1): ...

makes `flambeau.add` (with `out=`), `Tensor.add` and `Tensor.add_`. Namespaced functions name
their module: `@public(module="special")` makes `flambeau.special.f`.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from flambeau.core.context import state
from flambeau.core.dtype import can_cast, of_python_type
from flambeau.core.errors import ArgumentError, AutogradError, DtypeError, ShapeError, complaint
from flambeau.ops.casts import copy
from flambeau.tensor.overrides import handle, switch
from flambeau.tensor.tensor import Tensor, adopt

FUNCTIONS: dict[str, dict[str, Callable]] = {"": {}}  # module -> name -> function
LOADERS: dict[str, Callable[[], Any]] = {}  # module -> how to import it, set by flambeau/__init__


def function_of(module: str, name: str) -> Callable:
    """A public function of a module that may not have been imported yet."""
    if name not in FUNCTIONS.get(module, {}):
        LOADERS[module]()
    return FUNCTIONS[module][name]


def public(f: Callable | None = None, *, name: str | None = None, module: str = "",
           function: bool = True, method: bool = True, inplace: bool | Callable = False,
           out: bool = True,
           aliases: tuple[str, ...] = (), method_aliases: tuple[str, ...] = (),
           special: tuple[str, ...] = (), exact_out: bool = False,
           inplace_function: bool = False) -> Callable:
    """Register a function under its public names; returns the public function.

    `inplace=True` makes the in-place form compute and then copy; a function given instead does
    the work itself, as body(self, ...) -> self. `special` are names in `flambeau.special`;
    `exact_out` refuses an `out=` of another dtype; `inplace_function` gives the in-place form a
    place beside the function as well.
    """
    if f is None:
        return lambda f: public(f, name=name, module=module, function=function, method=method,
                                inplace=inplace, out=out, aliases=aliases,
                                method_aliases=method_aliases, special=special,
                                exact_out=exact_out, inplace_function=inplace_function)
    name = name or f.__name__
    call = _with_out(name, f, exact_out) if out else _overridable(name, f)
    for n in (name, *aliases):
        if function:
            FUNCTIONS.setdefault(module, {})[n] = call
        if method and not module:
            setattr(Tensor, n, call)
            if inplace:
                setattr(Tensor, n + "_", _inplace(n, f, inplace))
                if inplace_function:
                    FUNCTIONS[module][n + "_"] = getattr(Tensor, n + "_")
    for n in special:
        FUNCTIONS.setdefault("special", {})[n] = call
    for n in method_aliases:
        setattr(Tensor, n, call)
        if inplace:
            setattr(Tensor, n + "_", _inplace(n, f, inplace))
    return call


def _overridable(name: str, f: Callable) -> Callable:
    @functools.wraps(f)
    def call(*args, **kwargs):
        if kwargs and kwargs.get("dtype").__class__ is type:
            kwargs["dtype"] = of_python_type(kwargs["dtype"])
        if switch.active:
            result = handle(call, args, kwargs)
            if result is not NotImplemented:
                return result
        try:
            return f(*args, **kwargs)
        except AttributeError as error:
            raise unfit(name, error, args, kwargs) from error.__cause__

    call.__name__ = call.__qualname__ = name
    return call


def unfit(name: str, error: AttributeError, args: tuple, kwargs: dict) -> Exception:
    """The TypeError that says which argument is not what it must be, where that is why an
    attribute was missed; else the error itself."""
    places = [*enumerate(args), *kwargs.items()]
    found = [place for place, a in places if a is error.obj and not isinstance(a, Tensor)]
    if not found:
        return error
    must = "dtype must be a dtype" if found[0] == "dtype" else (
        f"argument {found[0]!r} must be a Tensor")
    return ArgumentError(complaint(name, must, dict(given=type(error.obj).__name__)))


def public_property(name: str, get: Callable, put: Callable | None = None) -> None:
    """An attribute of Tensor that subclasses and modes see as a call of its getter."""
    setattr(Tensor, name, property(_overridable(name, get), put))


def _with_out(name: str, f: Callable, exact: bool) -> Callable:
    @functools.wraps(f)
    def call(*args, out=None, **kwargs):
        if kwargs and kwargs.get("dtype").__class__ is type:
            kwargs["dtype"] = of_python_type(kwargs["dtype"])
        if switch.active:
            result = handle(call, args, kwargs if out is None else dict(kwargs, out=out))
            if result is not NotImplemented:
                return result
        try:
            result = f(*args, **kwargs)
        except AttributeError as error:
            raise unfit(name, error, args, kwargs) from error.__cause__
        return result if out is None else write_out(name, out, result, exact)

    call.__name__ = call.__qualname__ = name
    return call


def _inplace(name: str, f: Callable, body: bool | Callable) -> Callable:
    if callable(body):
        return _overridable(name + "_", body)

    def call(self, *args, **kwargs):
        if switch.active:
            result = handle(call, (self, *args), kwargs)
            if result is not NotImplemented:
                return result
        return assign(name + "_", self, f(snapshot(self, args), *args, **kwargs))

    call.__name__ = call.__qualname__ = name + "_"
    call.__doc__ = f"In-place form of `{name}`."
    return call


def snapshot(t: Tensor, others: tuple) -> Tensor:
    """`t`, or where gradients are recorded a copy with its history, which may be saved while
    `t` is overwritten."""
    if not state.grad_enabled or not (t.requires_grad or any(
            isinstance(x, Tensor) and x.requires_grad for x in others)):
        return t
    state.grad_enabled = False
    try:
        old = copy(t)
    finally:
        state.grad_enabled = True
    old._node, old._output_nr, old._requires_grad = t._node, t._output_nr, t._requires_grad
    return old


def assign(op: str, target: Tensor, result: Tensor) -> Tensor:
    """target <- result, in place, with the result's history; returns target."""
    check_result(op, target, result)
    return copy.inplace(target, result)


def check_result(op: str, target: Tensor, result: Tensor) -> None:
    s, r = target._spec, result._spec
    if not can_cast(r.dtype, s.dtype):
        raise DtypeError(complaint(
            op, f"result type {_type_name(r.dtype)} can't be cast to the desired output type "
            f"{_type_name(s.dtype)}"))
    if tuple(r.shape) != tuple(s.shape):
        raise ShapeError(complaint(
            op, "the output must have the shape of the result",
            dict(output=list(s.shape), result=list(r.shape)),
            "Broadcasting may not change the tensor that is written to."))


def _type_name(d) -> str:
    names = dict(float32="Float", float64="Double", float16="Half", bfloat16="BFloat16",
                 int64="Long", int32="Int", int16="Short", int8="Char", uint8="Byte", bool="Bool",
                 complex64="ComplexFloat", complex128="ComplexDouble")
    return names.get(d.name, d.name)


def write_out(op: str, out: Any, result: Any, exact: bool = False):
    """Write results to the user's `out=`; a tensor of another shape is resized."""
    if isinstance(result, tuple):
        if not isinstance(out, (tuple, list)) or len(out) != len(result):
            raise ArgumentError(complaint(op, f"out must be a tuple of {len(result)} tensors"))
        written = [write_out(op, o, r, exact) for o, r in zip(out, result)]
        return type(result)(*written) if hasattr(result, "_fields") else tuple(written)
    if not isinstance(out, Tensor):
        raise ArgumentError(complaint(op, "out must be a Tensor", dict(out=type(out).__name__)))
    if state.grad_enabled and (out._requires_grad or result._requires_grad):
        raise AutogradError(complaint(
            op, "functions with out=... arguments don't support automatic differentiation, but "
            "one of the arguments requires grad"))
    if exact and out.dtype is not result.dtype:
        raise DtypeError(complaint(op, f"Expected out tensor to have dtype {result.dtype}",
                                   dict(out=out.dtype)))
    if out.shape != result.shape:
        resize_output(op, out, result)
    check_result(op, out, result)
    return copy.inplace(out, result)


def resize_output(op: str, out: Tensor, result: Tensor) -> None:
    """Give `out` new memory in the result's shape; a warning if it held elements."""
    if out.numel():
        warnings.warn(f"{op}: an output with one or more elements was resized since it had shape "
                      f"{list(out.shape)}, which does not match the required output shape "
                      f"{list(result.shape)}.", UserWarning, stacklevel=4)
    from flambeau.ops.creation import full

    s = result._spec
    adopt(out, full(shape=tuple(s.shape), value=0, dtype=out.dtype, device=out.device))
