"""Some of CPython's own tests run with every frame replaced: clean without the hook, clean with it.

More files by hand: see `cpython_under_hook.py`. Tests that look at the identity of code objects, at
counts of all objects or at `dis` itself cannot hold: test_descr, test_ast, test_dis, and
test_sys_settrace where code is rewritten.
"""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from flambeau.capture import frame_hook

SCRIPT = Path(__file__).with_name("cpython_under_hook.py")
FILES = """test_scope test_generators test_coroutines test_asyncgen test_yield_from test_exceptions
    test_raise test_contextlib test_with test_extcall test_super test_patma test_dataclasses
    test_listcomps test_unpack_ex test_global""".split()


def status(mode: str) -> int:
    names = [f for f in FILES if importlib.util.find_spec(f"test.{f}")]
    run = subprocess.run([sys.executable, str(SCRIPT), mode, *names], capture_output=True,
                         text=True, timeout=900)
    print(run.stdout[-2000:], run.stderr[-2000:])
    return run.returncode


@pytest.mark.skipif(importlib.util.find_spec("test.test_scope") is None,
                    reason="this Python comes without its own tests")
@pytest.mark.skipif(not frame_hook.available(), reason="no frame hook for this interpreter")
@pytest.mark.parametrize("mode", ["clone", "rewritten"])
def test_clean_files_stay_clean(mode):
    found = status(mode)
    assert found == 0 or status("off") != 0, found
