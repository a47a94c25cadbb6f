"""Kernels compile for NEON: no instruction of another architecture is left in them."""

import pytest

from flambeau.codegen.kernel import machine_of
from flambeau.codegen.nest.program import NestProgram
from flambeau.codegen.target import neon_target
from flambeau.loops.api import Buf, apply, cast, check, nest, reduce, scan
from flambeau.loops.expr import OPS
from flambeau.runtime import jit
from flambeau.schedule.liveness import externals
from flambeau.schedule.plan import planned

TARGET = neon_target("generic", "+neon", {})
X = Buf("x", (37, 129))
IDX = Buf("idx", (10,), None, "int64")
NESTS = dict(
    transposed=nest(X.shape, lambda i: X[i] + Buf("y", (129, 37))[i[::-1]]),
    gather=nest((10, 129), lambda i: X[check(IDX[i[:1]], 37, "embedding"), i[1]]),
    cumsum=nest(X.shape, lambda i: scan("add", i[1], X[i])),
    argmax=nest((37,), lambda i: reduce("argmax", (129,), lambda r: X[i + r])),
    moments=nest((37,), lambda i: reduce("welford", (129,), lambda r: X[i + r])),
    halves=nest(
        (37,),
        lambda i: cast(
            reduce(
                "add",
                (129,),
                lambda r: cast(Buf("h", (37, 129), None, "float16")[i + r], "float32"),
            ),
            "bfloat16",
        ),
    ),
)


def compiles(n):
    plans = planned([n], machine_of(TARGET))
    text = NestProgram(TARGET, (n,), tuple(plans), externals((n,)), True).text()
    made = jit.assembly(text, cpu="generic", features="+neon", triple="aarch64-unknown-linux-gnu")
    assert "chunk0" in made


@pytest.mark.parametrize("name", NESTS)
def test_nests(name):
    compiles(NESTS[name])


@pytest.mark.parametrize("kind", ["float32", "float64", "int32", "uint8"])
def test_all_scalar_operations_in_one_kernel(kind):
    x = Buf("x", (100,), None, kind)
    whole = x.dtype.is_floating_point
    fits = {"any", "number"} | ({"floating"} if whole else {"integral", "integral or bool"})
    names = [n for n, (_, wanted, _) in OPS.items() if wanted in fits]
    compiles(nest((100,), lambda i: tuple(apply(n, *[x[i]] * OPS[n][0]) for n in names)))
