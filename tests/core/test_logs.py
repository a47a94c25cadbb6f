"""Each stage of the compiler shows itself when it is asked for, and only then."""

import logging
import os
import re
import subprocess
import sys

import pytest

import flambeau as torch
from flambeau import _logging
from flambeau.codegen.kernel import compile_kernel
from flambeau.core import logs
from flambeau.loops.api import Buf, nest

PROGRAM = """
import flambeau as torch
w = torch.randn(7, 5, requires_grad=True)
@torch.compile
def f(x):
    y = (x + 1).relu() * 2
    if y.sum() > 0:
        y = y * 3
    return y @ w
f(torch.randn(3, 7))
"""


@pytest.fixture
def stages():
    before = set(logs.on)
    yield _logging.set_logs
    logs.on.clear()
    logs.on.update(before)


def ran(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment
    )


@pytest.fixture
def environment(tmp_path):
    return {**os.environ, "FLAMBEAU_CACHE": str(tmp_path / "cache")}


def test_every_stage_prints_under_its_name(environment):
    said = ran(PROGRAM, **environment, FLAMBEAU_LOGS="all").stderr
    heads = {line.split("]")[0][1:] for line in said.splitlines() if line.startswith("[")}
    assert heads == set(logs.STAGES)
    assert "= relu(" in said and "t1[i0" in said and "define" in said and "ret" in said


def test_nothing_is_printed_or_imported_unasked(environment):
    done = ran(PROGRAM + "import sys; print('logging' in sys.modules)", **environment)
    assert done.stderr == ""
    quiet = ran("import sys, flambeau; print('logging' in sys.modules)", **environment)
    without = ran("import sys, numpy; print('logging' in sys.modules)", **environment)
    assert quiet.stdout == without.stdout


def test_a_wrong_name_warns_and_names_the_known(environment):
    said = ran("import flambeau.core.logs", **environment, FLAMBEAU_LOGS="grahp,loops").stderr
    assert "got stage=grahp" in said and "graph, guards, breaks" in said


def test_set_logs_shows_exactly_what_it_names(stages, caplog):
    stages(schedule=logging.INFO, loops=False)
    x = Buf("x", (11, 13))
    compile_kernel(nest(x.shape, lambda i: x[i] * 11.125))
    assert {record.name for record in caplog.records} == {"flambeau.schedule"}
    assert re.search(r"for i0<143 by \d+:", caplog.text)
    stages()
    assert logs.on == logs._of_environment()


def test_pytorchs_names_mean_the_nearest_stage(stages):
    stages(graph_breaks=True, output_code=True, recompiles=True)
    assert logs.on == {"breaks", "llvm", "guards"}
    with pytest.raises(ValueError, match="a stage is one of graph"):
        torch._logging.set_logs(bogus=True)
