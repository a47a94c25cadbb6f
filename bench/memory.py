"""The largest memory of training and inference, each in a process of its own.

    python bench/memory.py            # PyTorch eager, flambeau eager, flambeau compiled
    python bench/memory.py resnet18   # networks whose name matches

First what the process takes, then what it took beyond its import. PyTorch maps 200 MiB of code at
import; LLVM, which flambeau loads with the first kernel, is 50 MiB that count as beyond.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from pathlib import Path

from networks import NETWORKS

CHILD = """
import importlib, json, sys
sys.path.insert(0, sys.argv[1])
from networks import NETWORKS, training_step
torch = importlib.import_module(sys.argv[2])
torch.set_num_threads(2)

def largest(name="VmHWM"):
    lines = open("/proc/self/status").read().split("\\n")
    return int(next(x for x in lines if x.startswith(name)).split()[1]) / 1024

torch.ones(2).sum().item()
before = largest("VmRSS")
network, way = sys.argv[3].split(":")
if way == "infer":
    model, x, _ = NETWORKS[network](torch)
    model.eval()
    call = torch.compile(model) if sys.argv[4] == "compiled" else model
    step = lambda: call(x)
    grad = torch.no_grad()
    grad.__enter__()
else:
    step = training_step(torch, network)
    step = torch.compile(step) if sys.argv[4] == "compiled" else step
for _ in range(5):
    step()
print(json.dumps([largest(), largest() - before]))
"""


def measured(framework: str, case: str, way: str) -> list[float]:
    """MiB at the largest: of the process, and beyond its import."""
    here = str(Path(__file__).parent)
    run = subprocess.run([sys.executable, "-c", CHILD, here, framework, case, way],
                         env=dict(os.environ, FLAMBEAU_TIER="sync"), capture_output=True,
                         text=True)
    if run.returncode:
        raise SystemExit(run.stderr)
    return json.loads(run.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pattern", nargs="?", default="")
    arguments = parser.parse_args()
    columns = {"PyTorch": ("torch", "eager"), "flambeau": ("flambeau", "eager"),
               "compiled": ("flambeau", "compiled")}
    print(f"{'MiB':18}" + "".join(f"{name:>14}" for name in columns))
    for case in (f"{name}:{way}" for name in NETWORKS for way in ("train", "infer")):
        if re.search(arguments.pattern, case):
            numbers = [measured(framework, case, way) for framework, way in columns.values()]
            print(f"{case:18}" + "".join(f"{a:8.0f} {b:5.0f}" for a, b in numbers), flush=True)


if __name__ == "__main__":
    main()
