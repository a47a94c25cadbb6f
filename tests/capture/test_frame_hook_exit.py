"""The hook at the edges of a process's life: exit, fork, signals, threads, sub-interpreters."""

import os
import subprocess
import sys

import pytest

from flambeau.capture import frame_hook as hook

pytestmark = pytest.mark.skipif(not hook.available(), reason="no frame hook on this interpreter")

HEAD = "from flambeau.capture import frame_hook as F\n"
IDLE = "def cb(f, c, a): return None\n"
CASES = {
    "active at exit with __del__": IDLE
    + "import builtins\nclass D:\n  def __del__(s): (lambda: [i for i in range(3)])()\n"
    + "x = D(); x.me = x; builtins.k = D()\nF.hook().activate(cb)",
    "sys.exit inside a region": IDLE + "import sys\nwith F.enabled(cb): sys.exit(0)",
    "region never left": IDLE
    + "import builtins\ne = F.enabled(cb); e.__enter__()\n"
    + "class D:\n  def __del__(s): (lambda: 1)()\n"
    + "builtins.k = D()",
    "daemon thread in a region": IDLE
    + "import threading\nstarted = threading.Event()\ndef w():\n  with F.enabled(cb):\n"
    + "    while 1: (lambda: started.set())()\n"
    + "threading.Thread(target=w, daemon=True).start(); started.wait()",
    "fork in a region": IDLE
    + "import os\ndef g(): return 1\nwith F.enabled(cb):\n  p = os.fork()\n  g()\n"
    + "  if p == 0: os._exit(0)\nassert os.waitpid(p, 0)[1] == 0",
    "KeyboardInterrupt in the callback": "import os\ndef cb(f, c, a):\n"
    + "  if c.co_name == 'g': os.kill(os.getpid(), 2); [i for i in range(1000)]\n"
    + "def g(): return 1\ntry:\n  with F.enabled(cb): g()\nexcept KeyboardInterrupt: pass\n"
    + "else: raise SystemExit(3)",
    "sub-interpreter": IDLE
    + "try: import _xxsubinterpreters as I\nexcept ImportError: import _interpreters as I\n"
    + "with F.enabled(cb):\n  i = I.create()\n"
    + "  I.run_string(i, 'def f(): return 1\\nf()'); I.destroy(i)",
    "asyncio": "import asyncio\nhit = []\ndef cb(f, c, a):\n  hit.append(c.co_name)\n"
    + "  return c.replace() if c.co_name == 'h' else None\ndef h(x): return x * 2\n"
    + "async def g(n):\n  await asyncio.sleep(0); return h(n)\n"
    + "async def m(): return await asyncio.gather(*[g(i) for i in range(20)])\n"
    + "with F.enabled(cb): r = asyncio.run(m())\n"
    + "assert r == [2 * i for i in range(20)] and 'h' in hit",
    "switched off": "import os\nassert not F.available()\nwith F.enabled(None): pass",
}


@pytest.mark.parametrize("name", CASES)
def test_process(name):
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(p for p in sys.path if p))
    if name == "switched off":
        environment["FLAMBEAU_FRAME_HOOK"] = "0"
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", HEAD + CASES[name]],
        capture_output=True,
        text=True,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
