"""Keys of nests: equal for equal nests in any process, different for any other."""

import os
import subprocess
import sys

from flambeau.loops.api import Buf, Scalar, const, nest, reduce
from flambeau.loops.fingerprint import fingerprint


def scaled(n=4, factor=2.0, strides=None, dtype="float32", out="out"):
    x = Buf("x", (n, 3), strides, dtype)
    return nest((n,), lambda i: reduce("add", (3,), lambda r: x[i + r] * const(factor, dtype)), out)


DIFFERENT = [
    lambda: scaled(),
    lambda: scaled(5),
    lambda: scaled(factor=0.0),
    lambda: scaled(factor=-0.0),
    lambda: scaled(strides=(1, 4)),
    lambda: scaled(dtype="float64"),
    lambda: scaled(out="other"),
    lambda: nest((4,), lambda i: Buf("x", (4,))[i] * Scalar("s", "float32")),
    lambda: nest((4,), lambda i: Buf("x", (4,))[i] * Buf("x", (4,))[i]),
    lambda: nest((2, 2), lambda i: Buf("x", (2, 2))[i]),
    lambda: nest((2, 2), lambda i: Buf("x", (2, 2))[i[1], i[0]]),
]
PRINT = """
from tests.loops.test_fingerprint import DIFFERENT, fingerprint
print(*[fingerprint([make()]) for make in DIFFERENT])
"""


def test_different_nests_have_different_keys():
    keys = {fingerprint([make()]) for make in DIFFERENT}
    keys.add(fingerprint([DIFFERENT[0](), DIFFERENT[1]()]))
    keys.add(fingerprint([DIFFERENT[1](), DIFFERENT[0]()]))
    assert len(keys) == len(DIFFERENT) + 2


def test_another_process_finds_the_same_keys():
    here = [fingerprint([make()]) for make in DIFFERENT]
    env = dict(os.environ, PYTHONHASHSEED="7")
    there = subprocess.run(
        [sys.executable, "-c", PRINT], env=env, capture_output=True, text=True, check=True
    )
    assert there.stdout.split() == here
