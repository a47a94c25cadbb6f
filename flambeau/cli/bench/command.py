"""`flambeau bench`: a table of what this machine gives, next to PyTorch where that is installed.

PyTorch is measured in a process of its own, in turn with flambeau, so that neither's threads are in
the other's way and drift of the machine hits both. Every figure is the best of all turns.
"""

import argparse
import importlib
import importlib.util
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from flambeau.cli.bench.workloads import WORKLOADS, Work

_SECONDS = 0.3  # of measuring, a workload and turn
Figures = dict[str, float | str]  # by workload: seconds or units per second, or why there is none


def main(arguments: list[str]) -> int:
    options = _parser().parse_args(arguments)
    chosen = _chosen(options.only)
    if not chosen:
        print(f"flambeau bench: no workload's name contains {options.only!r}", file=sys.stderr)
        return 2
    if options.worker:
        print(json.dumps(measured(options.worker, chosen)))
        return 0
    packages = ["flambeau"] + ["torch"] * (importlib.util.find_spec("torch") is not None)
    results: dict[str, Figures] = {package: {} for package in packages}
    for name in chosen:
        for _ in range(options.turns):
            for package in packages:
                _keep_best(results[package], name, _in_a_process(package, name))
        print(_row(name, results), flush=True)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="flambeau bench",
        description="Measure matrix products, memory, the cost of one small operation, and steps "
        "of training; beside PyTorch where it is installed.",
    )
    parser.add_argument("--only", metavar="WORDS", help="workloads whose name contains these")
    parser.add_argument("--turns", type=int, default=2, metavar="N", help="best of N (default 2)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures there")
    parser.add_argument("--worker", metavar="PACKAGE", help=argparse.SUPPRESS)
    return parser


def _chosen(words: str | None) -> list[str]:
    """The workload of that very name, else all whose name contains the words."""
    if words in WORKLOADS:
        return [words]
    return [name for name in WORKLOADS if (words or "") in name]


def measured(package: str, names: list[str]) -> Figures:
    """The figures of one package, measured here."""
    torch = importlib.import_module(package)
    figures: Figures = {}
    for name in names:
        torch.manual_seed(0)
        try:
            work = WORKLOADS[name](torch)
            figures[name] = figure(work, _fastest(work, _SECONDS))
        except Exception as error:
            figures[name] = f"{type(error).__name__}: {error}"
    return figures


def figure(work: Work, seconds: float) -> float:
    """Seconds for one unit of work whose unit is `s`, else units per second."""
    return seconds * work.amount if work.unit == "s" else work.amount / seconds


def _fastest(work: Work, budget: float) -> float:
    """Seconds of the fastest run, of at least three after a first one."""
    work.run()
    times: list[float] = []
    while len(times) < 3 or sum(times) < budget:
        start = time.perf_counter()
        work.run()
        times.append(time.perf_counter() - start)
    return min(times)


def _in_a_process(package: str, name: str) -> float | str:
    command = [sys.executable, "-m", "flambeau", "bench", "--worker", package, "--only", name]
    env = {**os.environ, "FLAMBEAU_TIER": "sync"}
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    if done.returncode:
        return (done.stderr.strip().splitlines() or ["no answer"])[-1]
    return json.loads(done.stdout.splitlines()[-1])[name]


def _keep_best(figures: Figures, name: str, value: float | str) -> None:
    former = figures.get(name)
    if isinstance(former, float) and isinstance(value, float):
        more_is_better = _unit(name) != "s"
        value = max(former, value) if more_is_better else min(former, value)
    figures[name] = value


def _unit(name: str) -> str:
    if name.startswith("matmul"):
        return "GFLOP/s"
    return "GB/s" if "MiB" in name else "s"


def _row(name: str, results: dict[str, Figures]) -> str:
    unit = _unit(name)
    cells = [f"{package} {shown(figures[name], unit)}" for package, figures in results.items()]
    ours, theirs = (results.get(package, {}).get(name) for package in ("flambeau", "torch"))
    if isinstance(ours, float) and isinstance(theirs, float):
        ratio = theirs / ours if unit == "s" else ours / theirs
        cells.append(f"{ratio:.2f} times as fast")
    return f"{name:28} " + "   ".join(cells)


def shown(value: float | str, unit: str) -> str:
    """A figure in a width of 14, times in us or ms; words as they are."""
    if isinstance(value, str):
        return value[:60]
    if unit != "s":
        return f"{value:6.1f} {unit:7}"
    return f"{value * 1e6:6.1f} us     " if value < 1e-3 else f"{value * 1e3:6.1f} ms     "
