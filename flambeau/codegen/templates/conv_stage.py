"""Copies of picture rows for the inner loops: channels last, with zeros where the window leaves
the picture.
"""

from __future__ import annotations

from dataclasses import dataclass

from flambeau.codegen.templates.stored import Stored
from flambeau.codegen.templates.strided import emit_transpose
from flambeau.codegen.templates.winograd_transform import each_group
from flambeau.codegen.text import (
    Function,
    Module,
    Operand,
    Value,
    element_of,
    lanes_of,
    size_of,
)


@dataclass(frozen=True, slots=True)
class Stage:
    """How rows of a picture [h, w] are staged as [row][column][channel].

    Column 0 of the stage is column `low` of the picture. `channels` are copied of the `pitch` that
    a staged pixel takes. `pixel` is the distance of pixels in a channels-last picture of all
    channels.
    """

    module: Module
    name: str
    type: str
    layout: str
    h: int
    w: int
    pixel: int
    low: int
    width: int
    channels: int
    pitch: int
    read: Stored | None = None

    @property
    def element(self) -> str:
        return element_of(self.type)

    @property
    def picture(self) -> Stored:
        """How the picture lies in memory."""
        return self.read or Stored(self.element)

    def emit(
        self, f: Function, source: Value, staged: Value, begin: Operand, rows: Operand
    ) -> None:
        """Stage `rows` rows of the picture from row `begin` on, which may lie outside.

        `source` points at row 0, column 0 of the first channel.
        """
        left = min(self.width, max(0, -self.low))
        valid = max(0, min(self.width, self.w - self.low) - left)
        right = self.width - left - valid
        with f.loop(0, rows) as loop:
            target = f.gep(staged, f.mul(loop.index, self.width * self.pitch), self.element)
            row = f.add(begin, loop.index)
            with f.either(f.compare("ult", row, self.h)) as branch:
                if valid:
                    at = f.gep(target, left * self.pitch, self.element)
                    self._row(f, source, row, at, left + self.low, valid)
                self._zero(f, target, 0, left)
                self._zero(f, target, left + valid, right)
                branch.otherwise()
                self._zero(f, target, 0, self.width)

    def _zero(self, f: Function, target: Value, column: int, count: int) -> None:
        if count:
            at = f.gep(target, column * self.pitch, self.element)
            f.clear(at, count * self.pitch * size_of(self.element))

    def _row(
        self, f: Function, source: Value, row: Value, target: Value, column: int, count: int
    ) -> None:
        """Copy `count` pixels of a row from `column` on."""
        place = f.add(f.mul(row, self.w), column)
        if self.layout == "NHWC":
            source = self.picture.gep(f, source, f.mul(place, self.pixel))
            self._pixels(f, source, target, count)
            return
        source = self.picture.gep(f, source, place)
        if self.pitch == 1:
            self._copy(f, target, source, count)
            return
        name = f"{self.name}_{count}x{self.channels}"
        if name not in self.module:
            plane = self.h * self.w
            emit_transpose(
                self.module, name, count, plane, self.pitch, self.type, self.picture,
                rows=self.channels,
            )  # fmt: skip
        f.call(name, "void", source, target, self.channels)

    def _pixels(self, f: Function, source: Value, target: Value, count: int) -> None:
        if self.pixel == self.pitch == self.channels:
            self._copy(f, target, source, count * self.pitch)
            return
        with f.loop(0, count) as loop:
            at = f.gep(target, f.mul(loop.index, self.pitch), self.element)
            self._copy(
                f, at, self.picture.gep(f, source, f.mul(loop.index, self.pixel)), self.channels
            )

    def _copy(self, f: Function, target: Value, source: Value, count: int) -> None:
        """Neighbouring elements."""
        picture = self.picture
        if picture.element == self.element:
            f.copy(target, source, count * size_of(self.element))
            return

        def group(start: Operand, lanes: int) -> None:
            x = picture.load(f, self.type, picture.gep(f, source, start), lanes)
            f.store_lanes(x, f.gep(target, start, self.element), lanes)

        each_group(f, count, lanes_of(self.type), group)
