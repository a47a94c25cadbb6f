"""How tensors print: PyTorch's layout, widths and precision."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from flambeau.core import dtype as dtypes
from flambeau.core.errors import ValueRangeError, complaint
from flambeau.tensor.tensor import Tensor


@dataclass
class Options:
    """What `set_printoptions` sets: digits, elements before summarising, elements kept at each
    end, characters a line, scientific notation (None: as the values need it)."""

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


options = Options()


def set_printoptions(precision=None, threshold=None, edgeitems=None, linewidth=None, profile=None,
                     sci_mode=None) -> None:
    """Set how tensors print; profile is "default", "short" or "full"."""
    profiles = {"default": (4, 1000, 3, 80), "short": (2, 1000, 2, 80),
                "full": (4, math.inf, 3, 80)}
    if profile is not None:
        if profile not in profiles:
            raise ValueRangeError(complaint("set_printoptions", "profile must be default, short or "
                                            "full", dict(profile=profile)))
        (options.precision, options.threshold, options.edgeitems,
         options.linewidth) = profiles[profile]
    for name, value in [("precision", precision), ("threshold", threshold),
                        ("edgeitems", edgeitems), ("linewidth", linewidth)]:
        if value is not None:
            setattr(options, name, value)
    options.sci_mode = sci_mode


def get_printoptions() -> dict:
    """The options in force, by name."""
    return dict(vars(options))


class NumberFormat:
    """One width and one notation for all numbers that are shown."""

    def __init__(self, values: np.ndarray):
        self.floating = values.dtype.kind == "f"
        self.whole, self.scientific, self.width = True, False, 1
        flat = values.reshape(-1)
        if not self.floating:
            self.width = max([len(str(v)) for v in flat.tolist()], default=1)
            return
        shown = flat[np.isfinite(flat) & (flat != 0)]
        if shown.size:
            self._fit(shown)
        if options.sci_mode is not None:
            self.scientific = options.sci_mode

    def _fit(self, shown: np.ndarray) -> None:
        sizes = np.abs(shown.astype(np.float64))
        low, high = sizes.min(), sizes.max()
        self.whole = bool((shown == np.ceil(shown)).all())
        self.scientific = bool(high / low > 1000.0 or high > 1e8
                               or not self.whole and low < 1e-4)
        if options.sci_mode is not None:
            self.scientific = options.sci_mode
        texts = [self._text(v) for v in shown.tolist()]
        self.width = max(self.width, *map(len, texts))

    def _text(self, value) -> str:
        if not self.floating:
            return str(value)
        if self.scientific:
            return f"{value:.{options.precision}e}"
        if self.whole:
            return f"{value:.0f}" + ("." if math.isfinite(value) else "")
        return f"{value:.{options.precision}f}"

    def __call__(self, value) -> str:
        return self._text(value).rjust(self.width)


class ComplexFormat:
    """Real and imaginary parts with a format each."""

    def __init__(self, values: np.ndarray):
        self.real, self.imag = NumberFormat(values.real), NumberFormat(values.imag)
        self.width = self.real.width + self.imag.width + 1

    def __call__(self, value) -> str:
        real, imag = self.real(value.real), self.imag(value.imag).lstrip() + "j"
        return real + imag if imag[0] in "+-" else f"{real}+{imag}"


def edges(values: np.ndarray) -> np.ndarray:
    """The elements that a summary shows."""
    for d, n in enumerate(values.shape):
        if n > 2 * options.edgeitems:
            keep = [*range(options.edgeitems), *range(n - options.edgeitems, n)]
            values = values.take(keep, axis=d)
    return values


def vector_text(values: np.ndarray, indent: int, summarise: bool, fmt) -> str:
    each = fmt.width + 2
    per_line = max(1, (options.linewidth - indent) // each)
    if summarise and values.size > 2 * options.edgeitems:
        items = values.tolist()
        shown = ([fmt(v) for v in items[:options.edgeitems]] + [" ..."]
                 + [fmt(v) for v in items[len(items) - options.edgeitems:]])
    else:
        shown = [fmt(v) for v in values.tolist()]
    lines = [", ".join(shown[i:i + per_line]) for i in range(0, len(shown), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def array_text(values: np.ndarray, indent: int, summarise: bool, fmt) -> str:
    if values.ndim == 0:
        return fmt(values.item())
    if values.ndim == 1:
        return vector_text(values, indent, summarise, fmt)
    rows = [array_text(v, indent + 1, summarise, fmt) for v in _shown_rows(values, summarise)]
    if summarise and len(values) > 2 * options.edgeitems:
        rows.insert(options.edgeitems, "...")
    return "[" + ("," + "\n" * (values.ndim - 1) + " " * (indent + 1)).join(rows) + "]"


def _shown_rows(values: np.ndarray, summarise: bool):
    n = options.edgeitems
    if summarise and len(values) > 2 * n:
        return [*values[:n], *values[len(values) - n:]]
    return list(values)


def printable(t: Tensor) -> np.ndarray:
    """Values as NumPy prints them: narrow floats as float32."""
    array = t._array
    if t.dtype.is_narrow_float:
        return array.astype(np.float32)
    return array


def text_of(t: Tensor, indent: int) -> str:
    values = printable(t)
    summarise = values.size > options.threshold
    shown = edges(values) if summarise else values
    fmt = ComplexFormat(shown) if values.dtype.kind == "c" else NumberFormat(shown)
    return array_text(values, indent, summarise, fmt)


def suffixes(t: Tensor) -> tuple[list[str], bool]:
    """What stands behind the values, and whether the values are left out."""
    found, default = [], dtypes.default_dtype()
    if t.device.type != "cpu":
        found.append(f"device='{t.device}'")
    empty = t.numel() == 0
    if t._array is None:
        found.append(f"size={tuple(t.shape)}")
        if t.dtype is not default:
            found.append(f"dtype={t.dtype}")
    elif empty:
        if t.ndim != 1:
            found.append(f"size={tuple(t.shape)}")
        if t.dtype is not default:
            found.append(f"dtype={t.dtype}")
    elif t.dtype not in (default, default.to_complex(), dtypes.int64, dtypes.bool):
        found.append(f"dtype={t.dtype}")
    if t.grad_fn is not None:
        found.append(f"grad_fn=<{t.grad_fn.name()}>")
    elif t.requires_grad:
        found.append("requires_grad=True")
    return found, empty


def with_suffixes(text: str, found: list[str], indent: int) -> str:
    parts, last = [text], len(text) - text.rfind("\n") + 1
    for suffix in found:
        if last + len(suffix) + 2 > options.linewidth:
            parts.append(",\n" + " " * indent + suffix)
            last = indent + len(suffix)
        else:
            parts.append(", " + suffix)
            last += len(suffix) + 2
    return "".join(parts) + ")"


def tensor_text(self: Tensor, *, tensor_contents=None) -> str:
    """`tensor([...], dtype=.., grad_fn=..)`."""
    prefix = "tensor("
    found, empty = suffixes(self)
    if tensor_contents is not None:
        text = tensor_contents
    elif self._array is None:
        text = "..."
    else:
        text = "[]" if empty else text_of(self, len(prefix))
    return with_suffixes(prefix + text, found, len(prefix))


def tensor_format(self: Tensor, spec: str) -> str:
    """f-strings: a zero-dimensional tensor formats as its number."""
    if self.ndim == 0 and self._array is not None:
        return self.item().__format__(spec)
    return object.__format__(self, spec)


Tensor.__repr__ = tensor_text
Tensor.__format__ = tensor_format
