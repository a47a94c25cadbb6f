"""Where the frame hook is not safe, everything still works, and direct callees are captured."""

import os
import subprocess
import sys

SCRIPT = """
import flambeau as torch
from flambeau.capture import frame_hook
from flambeau.compile import records
assert not frame_hook.available()

class Net:
    def __init__(self):
        self.calls = 0
    def run(self, x, k=1):
        self.calls += 1
        y = x * k
        torch._dynamo.graph_break()
        return y + 1

def helper(x, *, scale):
    y = x * scale
    torch._dynamo.graph_break()
    return y - 1

net = Net()

def f(x):
    a = helper(x, scale=3)
    b = net.run(a, 2)
    return a + b

seen = []
records.collected.append(seen)
compiled = torch.compile(f)
for _ in range(3):
    assert compiled(torch.ones(2)).tolist() == f(torch.ones(2)).tolist() == [7, 7]
assert net.calls == 6
names = {site.code.co_name for kind, site, _ in seen if kind == "capture"}
assert {"f", "helper", "run"} <= names, names
"""


def test_everything_works_without_the_hook(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    environment = dict(os.environ, FLAMBEAU_FRAME_HOOK="0", FLAMBEAU_CHECK="1")
    environment["PYTHONPATH"] = os.pathsep.join(p for p in sys.path if p)
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr
