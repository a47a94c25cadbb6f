"""CPython's own tests with every Python frame of the main thread replaced on entry.

    python tests/robustness/cpython_under_hook.py clone test_generators test_scope
    python tests/robustness/cpython_under_hook.py rewritten test_exceptions
    python tests/robustness/cpython_under_hook.py off test_generators

`clone` runs an equal code object in place of each, `rewritten` one that was taken apart into
instructions and put together again, as code around a graph break is. The exit status is that of
`python -m test`; the last line counts the frames.
"""

from __future__ import annotations

import runpy
import sys
import types

from flambeau.capture import frame_hook
from flambeau.capture.bytecodes import UnknownBytecode, assembled, fresh_listing


class Replacing:
    """The callback: a code object to run for each, made once."""

    def __init__(self, mode: str):
        self.mode = mode
        self.made: dict[types.CodeType, types.CodeType | None] = {}
        self.frames = self.refused = 0

    def __call__(self, function, code, arguments):
        found = self.made.get(code, self)
        if found is self:
            found = self.made[code] = self.replacement(code)
        self.frames += found is not None
        return found

    def replacement(self, code: types.CodeType) -> types.CodeType | None:
        if self.mode == "clone":
            return code.replace()
        try:
            made = assembled(fresh_listing(code), code.co_stacksize + 2)
        except UnknownBytecode:
            self.refused += 1
            return None
        frame_hook.reserve(code, made)
        return made


def run_tests() -> int:
    try:
        runpy.run_module("test", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def main() -> int:
    mode, sys.argv = sys.argv[1], ["test", *sys.argv[2:]]
    if mode == "off":
        return run_tests()
    replacing = Replacing(mode)
    with frame_hook.enabled(replacing):
        status = run_tests()
    print(f"{replacing.frames} frames replaced, {replacing.refused} functions left as they are")
    return status


if __name__ == "__main__":
    sys.exit(main())
