"""The picture of a training: the learning curve, and what the network reads in unseen digits.

Drawn with Pillow at twice the size and shrunk, which smooths the lines.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw, ImageFont

_SCALE = 2
_WIDTH, _HEIGHT = 1400, 700
_INK, _FAINT, _BLUE, _ORANGE, _RED = "#222222", "#d8d8d8", "#9db8d9", "#e8710a", "#c5221f"
_COLUMNS, _ROWS = 12, 8

Point = tuple[float, float]


def draw(training: Any, file: Path) -> None:
    """Write the PNG for a training that has looked at the held-out digits at least once."""
    image = Image.new("RGB", (_WIDTH * _SCALE, _HEIGHT * _SCALE), "white")
    canvas = Canvas(ImageDraw.Draw(image))
    _draw_curve(canvas, training)
    _draw_digits(image, canvas, training)
    image.resize((_WIDTH, _HEIGHT), Image.Resampling.LANCZOS).save(file)


class Canvas:
    """Lines and words in points of the finished picture."""

    def __init__(self, pen: ImageDraw.ImageDraw):
        self.pen = pen

    def line(self, points: Sequence[Point], color: str, width: float = 1) -> None:
        scaled = [(x * _SCALE, y * _SCALE) for x, y in points]
        self.pen.line(scaled, color, round(width * _SCALE), joint="curve")

    def text(self, at: Point, words: str, size: int = 14, color: str = _INK, anchor: str = "la"):
        font = ImageFont.load_default(size * _SCALE)
        self.pen.text((at[0] * _SCALE, at[1] * _SCALE), words, color, font, anchor)

    def frame(self, corner: Point, side: float, color: str) -> None:
        x, y = corner[0] * _SCALE, corner[1] * _SCALE
        self.pen.rectangle((x, y, x + side * _SCALE, y + side * _SCALE), None, color, 2 * _SCALE)


class Axes:
    """A plot area: step to the right, values from 0 to `top` upwards."""

    left, right, upper, lower = 80, 620, 90, 620

    def __init__(self, steps: int, top: float):
        self.steps, self.top = steps, top

    def point(self, step: float, value: float) -> Point:
        x = self.left + (self.right - self.left) * step / self.steps
        y = self.lower - (self.lower - self.upper) * min(value, self.top) / self.top
        return x, y


def _draw_curve(canvas: Canvas, training: Any) -> None:
    shares, losses = Axes(training.step, 1.0), Axes(training.step, 2.5)
    final = training.accuracies[-1][1]
    count = training.settings.held_out
    canvas.text((80, 30), f"{final:.1%} of {count:,} unseen digits read right", size=22)
    for tenth in range(0, 11, 2):
        canvas.line([shares.point(0, tenth / 10), shares.point(shares.steps, tenth / 10)], _FAINT)
        canvas.text((70, shares.point(0, tenth / 10)[1]), f"{tenth * 10}%", anchor="rm")
        canvas.text((630, losses.point(0, tenth / 4)[1]), f"{tenth / 4:.1f}", anchor="lm")
    canvas.text((350, 635), f"training step, of {training.step:,}", anchor="ma")
    smooth = [losses.point(at, value) for at, value in enumerate(_smoothed(training.losses))]
    canvas.line(smooth, _BLUE, 2)
    canvas.line([shares.point(*share) for share in training.accuracies], _ORANGE, 3)
    canvas.text((350, 340), "accuracy on held-out digits (left)", color=_ORANGE, anchor="mm")
    canvas.text((350, 365), "loss in training (right)", color="#5b82b5", anchor="mm")


def _smoothed(values: Sequence[float]) -> list[float]:
    """Exponential mean with weight 0.1 on the newest, started at the first value."""
    mean, result = values[0], []
    for value in values:
        mean += 0.1 * (value - mean)
        result.append(mean)
    return result


def _draw_digits(image: Image.Image, canvas: Canvas, training: Any) -> None:
    """A grid of held-out digits, the misread ones first, framed, with what they are."""
    pictures, labels = training.held_out
    read = training.predictions().tolist()
    truth = labels.tolist()
    wrong = [at for at in range(len(truth)) if read[at] != truth[at]]
    right = [at for at in range(len(truth)) if read[at] == truth[at]]
    canvas.text((700, 30), "what the network reads", size=22)
    canvas.text((1360, 34), f"red: misread, {len(wrong)} in all", color=_RED, anchor="ra")
    for place, at in enumerate((wrong[: _COLUMNS * 3] + right)[: _COLUMNS * _ROWS]):
        row, column = divmod(place, _COLUMNS)
        corner = (700 + 56 * column, 80 + 74 * row)
        ink = (255 * (1 - pictures[at, 0].numpy())).round().astype("uint8")
        digit = Image.fromarray(ink).resize((48 * _SCALE, 48 * _SCALE), Image.Resampling.BICUBIC)
        image.paste(digit, (corner[0] * _SCALE, corner[1] * _SCALE))
        _label(canvas, corner, read[at], truth[at])


def _label(canvas: Canvas, corner: tuple[int, int], read: int, truth: int) -> None:
    wrong = read != truth
    canvas.frame(corner, 48, _RED if wrong else _FAINT)
    words = f"{read}, is {truth}" if wrong else str(read)
    at = (corner[0] + 24, corner[1] + 51)
    canvas.text(at, words, color=_RED if wrong else _INK, anchor="ma")
