"""Pictures cut into tiles and transformed: the first half of every Winograd kernel.

A unit is a row of tiles of one image; unit u is row ``u % high`` of image ``u // high``. The result
is V[position][tile][channel], one matrix for each of the positions of a transformed tile.
"""

from __future__ import annotations

from dataclasses import dataclass

from flambeau.codegen.templates import winograd_transform as transform
from flambeau.codegen.templates.conv_stage import Stage
from flambeau.codegen.templates.stored import Stored
from flambeau.codegen.text import Function, Module, Operand, Value, element_of, lanes_of, size_of


@dataclass(slots=True)
class Tiles:
    """Tiles of `span` x `span` pixels, `step` apart, of a picture h x w.

    Row 0 of tile 0 is row `top` of the picture, column 0 is column `left`; outside is zero.
    `matrix` is applied along both sides. `channels` are held for each pixel and row of V. `read`
    says how the picture lies in memory.
    """

    module: Module
    name: str
    n: int
    channels: int
    layout: str
    h: int
    w: int
    top: int
    left: int
    span: int
    step: int
    high: int
    wide: int
    matrix: transform.Matrix
    type: str
    read: Stored

    @property
    def element(self) -> str:
        return element_of(self.type)

    @property
    def side(self) -> int:
        return len(self.matrix)

    @property
    def positions(self) -> int:
        return self.side * self.side

    @property
    def units(self) -> int:
        return self.n * self.high

    @property
    def stage_width(self) -> int:
        return (self.wide - 1) * self.step + self.span

    @property
    def stage_bytes(self) -> int:
        count = self.span * self.stage_width * self.channels + lanes_of(self.type)
        return -(-count * size_of(self.element) // 64) * 64

    @property
    def row(self) -> int:
        """Elements of a row of V: the channels, and a line against conflicts."""
        line = 64 // size_of(self.element)
        return -(-self.channels // line) * line + line

    def emit_stage(
        self, f: Function, source: Value, unit: Operand, staged: Value, channels: int, pixel: int
    ) -> None:
        """Stage the pixels of a unit; `channels` of the picture's `pixel` channels are copied.

        `source` points at the first of them in image 0.
        """
        stage = Stage(
            self.module, f"{self.name}_stage{channels}", self.type, self.layout, self.h, self.w,
            pixel, self.left, self.stage_width, channels, self.channels, self.read,
        )  # fmt: skip
        image, row = f.udiv(unit, self.high), f.urem(unit, self.high)
        start = self.read.gep(f, source, f.mul(image, pixel * self.h * self.w))
        stage.emit(f, start, staged, f.add(f.mul(row, self.step), self.top), self.span)

    def kernel(self, distance: int) -> str:
        """``transform(staged, v)``: one tile; positions of v are `distance` elements apart."""
        name = f"{self.name}_transform"
        if name in self.module:
            return name
        parameters = [("ptr noalias readonly", "staged"), ("ptr noalias", "v")]
        f = self.module.function(name, parameters)
        staged, v = f.arguments

        def group(c: Operand, count: int) -> None:
            side = range(self.span)
            x = [
                [f.load_lanes(self.type, self._pixel(f, staged, i, j, c), count) for j in side]
                for i in side
            ]
            y = transform.apply_both(f, self.matrix, self.matrix, x)
            for p, value in enumerate(v for row in y for v in row):
                f.store(value, f.gep(v, f.add(c, p * distance), self.element))

        transform.each_group(f, self.channels, lanes_of(self.type), group)
        f.ret()
        return name

    def _pixel(self, f: Function, staged: Value, i: int, j: int, c: Operand) -> Value:
        return f.gep(staged, f.add(c, (i * self.stage_width + j) * self.channels), self.element)

    def emit_transform(self, f: Function, staged: Value, v: Value, distance: int) -> None:
        """Transform the tiles of a staged unit."""
        kernel = self.kernel(distance)
        with f.loop(0, self.wide) as loop:
            at = f.gep(staged, f.mul(loop.index, self.step * self.channels), self.element)
            f.call(kernel, "void", at, f.gep(v, f.mul(loop.index, self.row), self.element))
