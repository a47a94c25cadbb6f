"""What a recurrent sequence computes, and which pointers its kernels take.

See `flambeau.ops.recurrence`; everything is contiguous.
"""

from __future__ import annotations

from dataclasses import dataclass

GATES = {"lstm": 4, "gru": 3, "tanh": 1, "relu": 1}
KEPT = {"lstm": 5, "gru": 4, "tanh": 0, "relu": 0}


@dataclass(frozen=True, slots=True)
class RecurrentSpec:
    """`cell` is ``lstm``, ``gru``, ``tanh`` or ``relu``. `given` are the cotangents that the
    backward pass has: ``out``, ``h``, ``c``."""

    cell: str
    steps: int
    batch: int
    size: int
    reverse: bool
    bias: bool = False
    keep: bool = True
    given: tuple[str, ...] = ()
    dtype: str = "float32"

    @property
    def groups(self) -> int:
        return GATES[self.cell]

    @property
    def kept(self) -> int:
        """Groups of `size` elements a row that backward reads again."""
        return KEPT[self.cell]

    @property
    def flops(self) -> float:
        return 2.0 * self.steps * self.batch * self.groups * self.size * self.size

    @property
    def forward_pointers(self) -> tuple[str, ...]:
        cells = self.cell == "lstm"
        read = ["gates", "h", *["c"] * cells, "w", *["b"] * self.bias]
        made = ["out", "last_h", *["last_c"] * cells, *["kept"] * bool(self.keep and self.kept)]
        return (*read, *made)

    @property
    def backward_pointers(self) -> tuple[str, ...]:
        """Cotangents are called d_..; d_h and d_c are results, `ct_h` and `ct_c` what is given."""
        cells, gru = self.cell == "lstm", self.cell == "gru"
        read = [f"ct_{name}" for name in self.given]
        read += ["w", *["h"] * gru, *["c"] * cells, *["out"] * (not cells)]
        read += ["kept"] * bool(self.kept)
        return (*read, "d_gates", *["d_hidden"] * gru, "d_h", *["d_c"] * cells)
