"""Which frames of an error a user sees."""

import traceback
from pathlib import Path

from flambeau.cli import tracebacks
from flambeau.core.errors import ShapeError

OURS = str(Path(tracebacks.__file__).parent.parent / "ops" / "made_up.py")
LIBRARY = tracebacks._LIBRARIES[0] + "made_up.py"
USERS = "/home/someone/train.py"


def call_chain(*calls: tuple[str, str], error: str) -> BaseException:
    """The error that comes up when functions (file, name) call each other; the last raises."""
    space: dict = {"ShapeError": ShapeError}
    after = f"raise {error}"
    for file, name in reversed(calls):
        exec(compile(f"def {name}():\n    {after}", file, "exec"), space)
        after = f"{name}()"
    try:
        exec(compile(after, OURS, "exec"), space)
    except Exception as caught:
        return caught.with_traceback(caught.__traceback__.tb_next)
    raise AssertionError("nothing was raised")


def shown(error: BaseException) -> list[str]:
    frames = traceback.extract_tb(tracebacks.shortened(error, error.__traceback__))
    return [frame.name for frame in frames]


def test_an_error_raised_on_purpose_ends_at_the_users_line():
    error = call_chain((USERS, "step"), (OURS, "add"), (OURS, "check"), error="ShapeError()")
    assert shown(error) == ["step"]


def test_any_other_error_keeps_where_it_came_up():
    error = call_chain((USERS, "step"), (OURS, "add"), (OURS, "check"), error="KeyError()")
    assert shown(error) == ["step", "add", "check"]


def test_frames_between_the_users_are_left_out():
    chain = [(USERS, "step"), (OURS, "call"), (USERS, "forward"), (OURS, "add")]
    assert shown(call_chain(*chain, error="ShapeError()")) == ["step", "forward"]
    assert shown(call_chain(*chain, error="KeyError()")) == ["step", "forward", "add"]


def test_an_error_inside_a_library_that_we_called_keeps_the_way_there():
    chain = [(USERS, "step"), (OURS, "add"), (LIBRARY, "ufunc")]
    assert shown(call_chain(*chain, error="KeyError()")) == ["step", "add", "ufunc"]


def test_an_error_with_no_frame_of_the_users_keeps_all():
    assert shown(call_chain((OURS, "add"), error="ShapeError()"))[-1] == "add"


def test_causes_are_shortened_too():
    cause = call_chain((USERS, "load"), (OURS, "read"), error="ShapeError()")
    error = call_chain((USERS, "step"), (OURS, "add"), error="ShapeError()")
    error.__cause__ = cause
    seen = []
    hook = tracebacks.show_user_lines(lambda kind, error, trace: seen.append(error))
    hook(type(error), error, error.__traceback__)
    assert seen == [error]
    assert [f.name for f in traceback.extract_tb(cause.__traceback__)][-1] == "load"
