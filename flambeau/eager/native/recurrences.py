"""Recurrent sequences and their backward passes by generated kernels."""

from __future__ import annotations

from flambeau.core import dtype as dtypes
from flambeau.core.spec import Spec
from flambeau.eager.native.call import NativeCall

KINDS = (dtypes.float32, dtypes.float64)
NAMES = tuple(f"{cell}_sequence{part}" for cell in ("lstm", "gru", "rnn")
              for part in ("", "_backward"))  # fmt: skip


def cell_of(primitive, params: dict) -> str:
    name = primitive.name.split("_")[0]
    return name if name != "rnn" else "relu" if params["relu"] else "tanh"


def recurrent_call(primitive, specs: list, params: dict, result: tuple) -> NativeCall | None:
    if not all(is_fit(s) for s in (*specs, *result) if s is not None):
        return None
    named = dict(zip(primitive.operands, specs, strict=True))
    steps, batch, _ = named["gates"].shape
    common = dict(cell=cell_of(primitive, params), steps=steps, batch=batch,
                  size=named["w"].shape[1], reverse=params["reverse"],
                  dtype=named["w"].dtype.name)
    from flambeau.codegen import templates

    spec = templates.RecurrentSpec
    if primitive.name.endswith("_backward"):
        given = tuple(n for n in ("out", "h", "c") if named.get(f"ct_{n}") is not None)
        found = spec(**common, given=given)
        kernel, pointers = templates.recurrent_backward(found), found.backward_pointers
        made = ("d_gates", "d_hidden", "d_h") if found.cell == "gru" else ("d_gates", "d_h", "d_c")
    else:
        found = spec(**common, bias=named["b"] is not None, keep=params.get("keep", False))
        kernel, pointers = templates.recurrent_forward(found), found.forward_pointers
        made = ("out", "last_h", *["last_c"] * (found.cell == "lstm"), "kept")
    places = {name: k for k, name in enumerate(primitive.operands)}
    places |= {name: ~k for k, name in enumerate(made[: len(result)])}
    return NativeCall(kernel, tuple(places[p] for p in pointers), result, several=True)


def is_fit(s: Spec) -> bool:
    return s.dtype in KINDS and s.numel > 0 and s.is_contiguous
