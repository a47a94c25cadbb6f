"""How long a compiled training step takes the first time, in fresh processes.

    python bench/first_step.py                  # with an empty kernel cache, and with a full one
    python bench/first_step.py --torch          # PyTorch, model compiled, beside

Each figure is of a process of its own; the import is not counted. `waits` is a first call that
waits for its program (`FLAMBEAU_TIER=sync`); `does not wait` is what a user sees, whose first steps
run on eager operations; `a later step` is the step itself, which no compiler can take away.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

CHILD = """
import importlib, json, sys, time
sys.path.insert(0, sys.argv[1])
from networks import training_step
torch = importlib.import_module(sys.argv[2])
torch.set_num_threads(2)
step = training_step(torch, sys.argv[3])
if sys.argv[2] == "torch":
    torch._dynamo.config.suppress_errors = True
call = torch.compile(step)
start = time.perf_counter()
call().item()
first = time.perf_counter() - start
later = []
for _ in range(8):
    start = time.perf_counter()
    call().item()
    later.append(time.perf_counter() - start)
print(json.dumps([first, min(later)]))
"""


def measured(framework: str, network: str, cache: str, tier: str) -> tuple[float, float]:
    """(first step, a later step) in seconds."""
    environment = dict(os.environ, FLAMBEAU_CACHE=cache, FLAMBEAU_TIER=tier,
                       TORCHINDUCTOR_CACHE_DIR=cache)
    here = str(Path(__file__).parent)
    run = subprocess.run([sys.executable, "-c", CHILD, here, framework, network],
                         env=environment, capture_output=True, text=True)
    if run.returncode:
        raise SystemExit(run.stderr)
    return tuple(json.loads(run.stdout.splitlines()[-1]))


def line(label: str, framework: str, network: str, tier: str, repeat: int) -> None:
    cold, warm, later = [], [], []
    for _ in range(repeat):
        with tempfile.TemporaryDirectory() as cache:
            first, step = measured(framework, network, cache, tier)
            cold.append(first)
            later.append(step)
            for _ in range(2):
                first, step = measured(framework, network, cache, tier)
                warm.append(first)
                later.append(step)
    print(f"{network:10}{label:28}{min(cold):14.2f}{min(warm):14.2f}{min(later):14.4f}",
          flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--torch", action="store_true", help="PyTorch as well")
    parser.add_argument("--networks", default="small,resnet18")
    parser.add_argument("--repeat", type=int, default=2)
    arguments = parser.parse_args()
    print(f"{'seconds':38}{'empty cache':>14}{'full cache':>14}{'a later step':>14}")
    for network in arguments.networks.split(","):
        line("flambeau, waits", "flambeau", network, "sync", arguments.repeat)
        line("flambeau, does not wait", "flambeau", network, "", arguments.repeat)
        if arguments.torch:
            line("PyTorch", "torch", network, "", 1)


if __name__ == "__main__":
    main()
