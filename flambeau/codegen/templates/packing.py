"""Copies of a matrix into panels that the micro-kernels read front to back.

A panel of width w holds ``panel[k * w + i] = source(i, k)``: w rows of A, or w columns of B. Lanes
past the valid ones are zero, so that edge panels need no masks.
"""

from __future__ import annotations

from flambeau.codegen.templates.microkernel import transposed
from flambeau.codegen.text import Function, Module, Operand, Value, element_of, lanes_of, zero

_PARAMETERS = [("ptr noalias readonly", "source"), ("ptr noalias", "panel"), ("i64", "k")]


def panel_from_rows(
    module: Module, name: str, rows: int, width: int, stride: int, type: str, tail: int
) -> None:
    """Pack `rows` rows (elements along k contiguous, rows `stride` apart) by transposing blocks.

    The function takes k at run time; `tail` is the only remainder of k by the lanes it may meet.
    Every k writes whole vectors: the panel needs one vector of room behind it.
    """
    f = module.function(name, _PARAMETERS)
    source, panel, k = f.arguments
    lanes = lanes_of(type)
    whole = f.sub(k, f.binary("urem", k, lanes))
    with f.loop(0, whole, lanes) as loop:
        _block(f, source, panel, loop.index, lanes, rows, width, stride, type)
    if tail:
        with f.when(f.compare("ne", whole, k)):
            _block(f, source, panel, whole, tail, rows, width, stride, type)
    f.ret()


def _block(
    f: Function,
    source: Value,
    panel: Value,
    k: Operand,
    count: int,
    rows: int,
    width: int,
    stride: int,
    type: str,
) -> None:
    """`count` steps of k of all rows; groups of lanes are stored in order, overlapping upwards."""
    lanes, element = lanes_of(type), element_of(type)
    groups = []
    for group in range(0, width, lanes):
        block = [
            f.load_lanes(type, f.gep(source, f.add(k, (group + i) * stride), element), count)
            if group + i < rows
            else zero(type)
            for i in range(lanes)
        ]
        groups.append((group, transposed(f, block)))
    target = f.gep(panel, f.mul(k, width), element)
    for i in range(count):
        for group, columns in groups:
            f.store(columns[i], f.gep(target, i * width + group, element))


def panel_from_columns(
    module: Module, name: str, columns: int, width: int, stride: int, type: str
) -> None:
    """Pack `columns` contiguous columns of rows `stride` apart: a plain copy, row by row.

    Whole vectors are written: the panel needs one vector of room behind it.
    """
    f = module.function(name, _PARAMETERS)
    source, panel, k = f.arguments
    lanes, element = lanes_of(type), element_of(type)
    with f.loop(0, k) as loop:
        row = f.gep(source, f.mul(loop.index, stride), element)
        target = f.gep(panel, f.mul(loop.index, width), element)
        for group in range(0, width, lanes):
            count = max(0, min(lanes, columns - group))
            x = f.load_lanes(type, f.gep(row, group, element), count) if count else zero(type)
            f.store(x, f.gep(target, group, element))
    f.ret()
