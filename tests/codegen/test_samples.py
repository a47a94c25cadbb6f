"""Every primitive's own samples as kernels for lesser processors, and as code for AArch64."""

import numpy as np
import pytest

from flambeau.codegen import target as targets
from flambeau.codegen.kernel import compile_kernel, machine_of
from flambeau.codegen.nest.program import NestProgram
from flambeau.core.errors import OpError
from flambeau.loops.interpret import interpret
from flambeau.loops.nest import Nest
from flambeau.ops.registry import REGISTRY
from flambeau.runtime import jit
from flambeau.schedule.fuse import fused
from flambeau.schedule.liveness import externals
from flambeau.schedule.plan import planned
from tests.ops.test_contract import PRIMITIVES, as_read, lowered, samples

SAMPLES = 2  # of each primitive
NEON = targets.neon_target("generic", "+neon", {})


def written(name: str) -> list[tuple[list[Nest], tuple, tuple]]:
    """(nests, operands, results) of the first samples of a primitive that are loops."""
    primitive, found = REGISTRY[name], []
    if primitive.kind in ("view", "random"):
        return found
    for operands, params in samples(primitive)[:SAMPLES]:
        try:
            made = lowered(primitive, operands, params)
        except OpError:
            continue
        if made is not None:
            nests, results = made
            found.append(([nests] if isinstance(nests, Nest) else list(nests), operands, results))
    return found


LOWERED = [name for name in PRIMITIVES if written(name)]


@pytest.mark.parametrize("level", ["avx2", "baseline"])
@pytest.mark.parametrize("name", LOWERED)
def test_kernels_of_lesser_processors_compute_what_nests_say(name, level):
    primitive = REGISTRY[name]
    for nests, operands, results in written(name):
        tensors = {f"x{k}": x for k, x in enumerate(operands) if isinstance(x, np.ndarray)}
        numbers = {f"x{k}": x for k, x in enumerate(operands) if isinstance(x, (int, float))}
        with np.errstate(all="ignore"):
            read = {n: as_read(primitive, x, results[0]) for n, x in tensors.items()}
            wanted = interpret(nests, read, **numbers)
        outs = {f"out{k}": np.empty(s.shape, s.numpy) for k, s in enumerate(results)}
        memory = {n: np.array(x, order="C") for n, x in tensors.items()} | outs
        with targets.restricted(level) as target:
            kernel = compile_kernel(nests, target=target, parameters=list(memory))
        addresses = [a.ctypes.data for a in memory.values()]
        kernel.entry(*addresses, *[numbers[n] for n in kernel.numbers])
        for out, array in outs.items():
            bound = 1e-5 if array.itemsize < 8 else 1e-9
            np.testing.assert_allclose(
                array, np.reshape(wanted[out], array.shape), rtol=bound, atol=bound, err_msg=out
            )


@pytest.mark.parametrize("name", LOWERED)
def test_samples_assemble_for_aarch64(name):
    for nests, _, _ in written(name)[:1]:
        outside, machine = externals(tuple(nests)), machine_of(NEON)
        groups = fused(tuple(nests), outside, machine)
        plans = [plan for group in groups for plan in planned(list(group), machine, 0)]
        flat = tuple(n for group in groups for n in group)
        text = NestProgram(NEON, flat, tuple(plans), outside, True).text()
        made = jit.assembly(
            text, cpu="generic", features="+neon", triple="aarch64-unknown-linux-gnu"
        )
        assert "chunk0" in made
