"""Single operations of flambeau against PyTorch eager, in alternation: ratios of minima.

    python bench/operations.py                              # all, forward and backward, three sizes
    python bench/operations.py batch_norm 'conv.*'          # those whose whole name matches
    python bench/operations.py --sizes 18,22 --compiled --json out.json

A ratio above 1 means that flambeau is faster. `--compiled` adds `flambeau.compile` of the call.
"""

from __future__ import annotations

import argparse
import json
import re
from types import ModuleType

import numpy as np
import torch
from operation_cases import OPERATIONS, Operation, normal
from timing import Call, geometric_mean, minima

import flambeau

WAYS = ("forward", "backward")


def values(result) -> np.ndarray:
    return result.detach().numpy() if hasattr(result, "detach") else np.zeros(())


def measured_call(
    framework: ModuleType, operation: Operation, n: int, way: str, compiled: bool
) -> Call:
    """What is timed: the operation without gradients, or the gradients of its operands."""
    call, operands = operation.make(framework, n)
    if compiled:
        call = framework.compile(call)
    if way == "forward":
        return lambda: call(*operands)
    leaves = [x for x in operands if x.dtype.is_floating_point]
    for leaf in leaves:
        leaf.requires_grad_()
    out = call(*operands)
    cotangent = normal(framework, *out.shape, seed=1)
    grad = framework.autograd.grad
    return lambda: grad(out, leaves, cotangent, retain_graph=True)


def agree(mine: object, theirs: object) -> bool:
    """Whether two results are equal within what float32 sums allow."""
    left, right = (r if isinstance(r, (tuple, list)) else (r,) for r in (mine, theirs))
    for x, y in zip(left, right, strict=True):
        x, y = values(x), values(y)
        scale = max(float(np.abs(y).max(initial=0)), 1e-6)
        if x.shape != y.shape or not np.allclose(x, y, rtol=1e-3, atol=1e-3 * scale):
            return False
    return True


def compare(operation: Operation, exponent: int, way: str, chosen) -> dict[str, object]:
    """Microseconds of PyTorch and of each form of flambeau, and the ratios."""
    forms = ["eager", "compiled"] if chosen.compiled and operation.sized else ["eager"]
    n = 1 << exponent
    theirs = measured_call(torch, operation, n, way, False)
    mine = [measured_call(flambeau, operation, n, way, form == "compiled") for form in forms]
    wanted = theirs()
    right = operation.name == "dropout" or all(agree(call(), wanted) for call in mine)
    reference, *times = minima([theirs, *mine], chosen.rounds, chosen.seconds)
    row: dict[str, object] = dict(
        name=operation.name, way=way, elements=f"2^{exponent}" if operation.sized else "10M",
        torch_us=reference * 1e6, right=right,
    )  # fmt: skip
    for form, seconds in zip(forms, times, strict=True):
        row |= {f"{form}_us": seconds * 1e6, f"{form}_ratio": reference / seconds}
    return row


def printed(row: dict) -> str:
    text = f"{row['name']:20} {row['way']:8} {row['elements']:>5} {row['torch_us']:10.1f}"
    for form in ("eager", "compiled"):
        if f"{form}_us" in row:
            ratio = row[f"{form}_ratio"]
            text += f" {row[f'{form}_us']:10.1f} {ratio:6.2f}{'!' if ratio < 1 else ' '}"
    return text + ("" if row["right"] else "  DIFFERENT")


def heading(compiled: bool) -> str:
    text = f"{'operation':20} {'way':8} {'size':>5} {'torch us':>10} {'eager us':>10}  ratio "
    return text + (f" {'comp. us':>10}  ratio" if compiled else "")


def parsed():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help="patterns of whole names; without any, all")
    parser.add_argument("--sizes", default="14,18,22", help="powers of two, with commas")
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--compiled", action="store_true")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=0.02, help="of one turn")
    parser.add_argument("--json")
    return parser.parse_args()


def selected(chosen):
    """(operation, exponent, way) of everything asked for."""
    for operation in OPERATIONS.values():
        if chosen.names and not any(re.fullmatch(p, operation.name) for p in chosen.names):
            continue
        for way in chosen.ways.split(","):
            if way == "backward" and not operation.backward:
                continue
            for exponent in chosen.sizes.split(",") if operation.sized else ["0"]:
                yield operation, int(exponent), way


def main() -> None:
    chosen = parsed()
    torch.set_num_threads(chosen.threads)
    flambeau.set_num_threads(chosen.threads)
    print(heading(chosen.compiled), flush=True)
    table = []
    for operation, exponent, way in selected(chosen):
        table.append(compare(operation, exponent, way, chosen))
        print(printed(table[-1]), flush=True)
    for form in ("eager", "compiled"):
        ratios = [float(row[f"{form}_ratio"]) for row in table if f"{form}_ratio" in row]
        if ratios:
            slower = sum(ratio < 1 for ratio in ratios)
            mean = geometric_mean(ratios)
            print(f"{form}: geometric mean {mean:.2f} of {len(ratios)}, slower {slower}")
    if chosen.json:
        with open(chosen.json, "w") as file:
            json.dump(table, file, indent=1)


if __name__ == "__main__":
    main()
