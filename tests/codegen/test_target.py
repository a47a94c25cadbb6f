"""What the CPU offers, and hiding some of it."""

from __future__ import annotations

import pytest

from flambeau.codegen import target, templates
from flambeau.codegen.templates.conv import emit_forward
from flambeau.codegen.templates.conv_spec import ConvSpec
from flambeau.codegen.templates.entry import emit_run
from flambeau.codegen.templates.gemm_kernel import emit_gemm
from flambeau.codegen.templates.gemm_plan import GemmSpec
from flambeau.codegen.text import Module
from flambeau.runtime import jit


def test_levels_shrink_vectors():
    with target.restricted("avx2") as medium, target.restricted("baseline") as low:
        assert medium.vector_bytes <= 32 and low.vector_bytes == 16
        assert not low.fused_multiply_add and not medium.bfloat16_dot
        assert low.lanes("double") == 2 and low.lanes() == 4
        assert target.host() is low
    assert target.host() is not low


def test_unknown_level():
    with pytest.raises(ValueError, match="must be one of"):
        target.restrict(target.x86_target("x", frozenset({"avx2"}), "", {}), "avx1024")


def test_levels_a_machine_lacks_change_nothing():
    small = target.x86_target("x86-64", frozenset(), "", {})
    assert target.restrict(small, "avx512") is small


def test_environment_chooses(monkeypatch):
    monkeypatch.setattr(target, "_chosen", [])
    monkeypatch.setenv("FLAMBEAU_CPU", "baseline")
    assert target.host().vector_bytes == 16


def test_cache_sizes(tmp_path):
    for i, (level, kind, size) in enumerate(
        [(1, "Data", "48K"), (1, "Instruction", "32K"), (2, "Unified", "2048K")]
    ):
        place = tmp_path / f"index{i}"
        place.mkdir()
        for name, text in (("level", level), ("type", kind), ("size", size)):
            (place / name).write_text(f"{text}\n")
    expected = {"level1_bytes": 48 * 1024, "level2_bytes": 2048 * 1024}
    assert target.cache_sizes(str(tmp_path)) == expected
    assert target.cache_sizes(str(tmp_path / "none")) == {}


@pytest.mark.parametrize("what", ["gemm", "conv", "winograd"])
def test_kernels_compile_for_neon(what):
    """Code for AArch64 is made by the same generators; here it is only assembled."""
    neon = target.neon_target("generic", "", {})
    module = Module(neon.vector_bits)
    if what == "gemm":
        kernel = emit_gemm(module, "kernel", GemmSpec(50, 60, 70, trans_b=True), neon)
    else:
        spec = ConvSpec(1, 16, 8, 8, 16, 3, 3, winograd=4 if what == "winograd" else 0)
        kernel = emit_forward(module, "kernel", spec, neon)
    emit_run(module, kernel, "entry")
    triple = "aarch64-unknown-linux-gnu"
    code = jit.assembly(module.text(), cpu="generic", features="+neon", triple=triple)
    assert "fmla\tv" in code


def test_public_names():
    for name in ("gemm", "conv_forward", "conv_input_grad", "conv_weight_grad"):
        assert callable(getattr(templates, name))
