"""Autograd's extras: functions that run again in the backward pass, hooks on what is saved for
it, anomaly mode.

A graph does not set the generator back. What the first run has drawn is kept in the graph, and the
second run gets copies of it.
"""

from __future__ import annotations

from typing import Any

from flambeau.autograd import anomaly, hooks
from flambeau.autograd import handles as handles_of_hooks
from flambeau.autograd.handles import RemovableHandle
from flambeau.autograd.saved import saved_tensors_hooks
from flambeau.capture.breaks import GraphBreak, foreign
from flambeau.capture.callbacks import for_c_code
from flambeau.capture.interpreter.builtin_calls import handles
from flambeau.capture.interpreter.run import CODE_HANDLERS
from flambeau.tensor.tensor import Tensor
from flambeau.utils import checkpoint


@handles(saved_tensors_hooks)
def make_hooks(run: Any, pack_hook: Any, unpack_hook: Any) -> saved_tensors_hooks:
    """Autograd runs for real, and calls back for what the user's functions do."""
    made = saved_tensors_hooks(for_c_code(run, pack_hook), for_c_code(run, unpack_hook))
    return run.session.note_created(made)


@handles(anomaly.set_detect_anomaly, anomaly.set_anomaly_enabled)
def set_anomaly(run: Any, mode: bool, *rest: Any, **named: Any) -> Any:
    if run.truth(mode):
        raise GraphBreak("anomaly mode looks at every value", "Switch it on to debug only.")
    return run.session.note_created(anomaly.set_detect_anomaly(False, *rest, **named))


@handles(anomaly.detect_anomaly)
def detect_anomaly(run: Any, *args: Any, **named: Any) -> Any:
    return set_anomaly(run, True)


def register_tensor_hook(run: Any, t: Tensor, hook: Any) -> RemovableHandle:
    """A hook on a tensor that the frame has made."""
    handle = foreign(hooks.register_tensor_hook, t, for_c_code(run, hook))
    run.session.note_created(handle.hooks)
    run.session.note_created(handle.extra)
    return run.session.note_created(handle)


def next_id(run: Any) -> int:
    """Another one in each capture; a program that leaves its hook behind fits one call only."""
    return handles_of_hooks.next_id()


def random_state(run: Any) -> int:
    return run.session.tensors.recorder.mark()


def exchanged(run: Any, state: int) -> int:
    recorder = run.session.tensors.recorder
    before, recorder.drawing = recorder.drawing, state
    return before


CODE_HANDLERS[checkpoint.random_state.__code__] = random_state
CODE_HANDLERS[checkpoint.exchanged.__code__] = exchanged
CODE_HANDLERS[hooks.register_tensor_hook.__code__] = register_tensor_hook
CODE_HANDLERS[handles_of_hooks.next_id.__code__] = next_id
