"""Dispatch: `bind` hands a primitive to whoever is listening.

From the top: a stack of *contexts* (autocast, vmap, `__torch_function__` modes), then autograd,
then the *executor* that really computes (eager, or a recorder that writes a graph). The stack,
the executor and the grad mode belong to a thread; `flambeau/__init__` installs autograd and the
eager executor at the bottom.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol


class Context(Protocol):
    """Sees every bind made while it is on the stack; calls `bind` again to go below itself."""

    def bind(self, primitive, args: tuple, params: dict) -> Any: ...

    def bind_inplace(self, primitive, target, args: tuple, params: dict) -> Any: ...


class Executor(Protocol):
    """Computes primitives without knowing about gradients."""

    def execute(self, primitive, args: tuple, params: dict) -> Any: ...

    def execute_inplace(self, primitive, target, args: tuple, params: dict) -> None: ...


class State(threading.local):
    """What dispatch depends on, per thread. The class attributes are each thread's start."""

    grad_enabled: bool = True
    inference: bool = False
    top: Context | None = None  # innermost context, None when the stack is empty
    stack: tuple = ()
    executor: Any = None  # None: the process-wide eager executor


state = State()
_dispatch: Callable  # the bottom of every stack
_dispatch_inplace: Callable


def install(dispatch: Callable, dispatch_inplace: Callable, eager: Executor) -> None:
    """Put autograd over the eager executor at the bottom of every thread's stack."""
    global _dispatch, _dispatch_inplace
    _dispatch, _dispatch_inplace = dispatch, dispatch_inplace
    State.executor = eager


def bind(primitive, args: tuple, params: dict):
    """Apply `primitive` to tensors, numbers and None, with hashable keyword parameters."""
    top = state.top
    if top is None:
        return _dispatch(primitive, args, params)
    with below_top():
        return top.bind(primitive, args, params)


def bind_inplace(primitive, target, args: tuple, params: dict):
    """Write `primitive(*args)` into `target`, which may be among the arguments; return it."""
    top = state.top
    if top is None:
        return _dispatch_inplace(primitive, target, args, params)
    with below_top():
        return top.bind_inplace(primitive, target, args, params)


@contextmanager
def pushed(context: Context) -> Iterator[Context]:
    """Make `context` the innermost one of this thread."""
    before = state.stack, state.top
    state.stack, state.top = (*state.stack, context), context
    try:
        yield context
    finally:
        state.stack, state.top = before


@contextmanager
def below_top() -> Iterator[None]:
    before = state.stack, state.top
    state.stack = state.stack[:-1]
    state.top = state.stack[-1] if state.stack else None
    try:
        yield
    finally:
        state.stack, state.top = before


@contextmanager
def executing(executor: Executor) -> Iterator[Executor]:
    """Let `executor` compute this thread's primitives instead of the eager one."""
    before = state.executor
    state.executor = executor
    try:
        yield executor
    finally:
        state.executor = before
