"""`pad` in its four modes."""

from __future__ import annotations

from flambeau.core.errors import OpError, UnsupportedError, complaint
from flambeau.functional.formats import in_format_of
from flambeau.functional.register import functional
from flambeau.ops import padding
from flambeau.ops.gathering import index
from flambeau.tensor.factories import arange


@functional
def pad(input, pad, mode="constant", value=None):
    """Pad trailing dimensions; `pad` is (left, right) of the last, then of the one before, .."""
    widths = tuple(int(n) for n in pad)
    if len(widths) % 2:
        raise OpError(complaint("pad", "Padding length must be divisible by 2",
                                dict(length=len(widths))))
    if len(widths) > 2 * input.ndim:
        raise OpError(complaint("pad", "Padding length should be less than or equal to two times "
                                "the input dimension", dict(length=len(widths), ndim=input.ndim)))
    pairs = [widths[i:i + 2] for i in range(0, len(widths), 2)][::-1]
    if mode == "constant":
        full = [(0, 0)] * (input.ndim - len(pairs)) + pairs
        return padding.pad(input, widths=tuple(full), value=0 if value is None else value)
    if value is not None and value != 0:
        raise OpError(complaint("pad", f'Padding mode "{mode}" doesn\'t take in value argument'))
    check_border(input, pairs, mode)
    original = input
    for k, (before, after) in enumerate(pairs):
        d = input.ndim - len(pairs) + k
        if before or after:
            input = bordered(input, d, before, after, mode)
    return in_format_of(original, input)


def check_border(input, pairs: list, mode: str) -> None:
    if mode not in ("reflect", "replicate", "circular"):
        raise UnsupportedError(complaint("pad", f"Unrecognised padding mode {mode}", None,
                                         "Use constant, reflect, replicate or circular."))
    if not 1 <= len(pairs) <= 3 or input.ndim not in (len(pairs) + 1, len(pairs) + 2):
        raise UnsupportedError(complaint(
            "pad", "Only 2D, 3D, 4D, 5D padding with non-constant padding are supported", dict(
                ndim=input.ndim, padding=pairs)))
    for (before, after), n in zip(pairs, input.shape[-len(pairs):]):
        limit = {"reflect": n - 1, "replicate": None, "circular": n}[mode]
        if limit is not None and max(before, after) > limit:
            raise OpError(complaint(
                "pad", f"padding size for mode {mode} should be at most {limit}", dict(
                    padding=(before, after), size=n)))
        if n + before + after < 1 or n == 0 and mode == "replicate":
            raise OpError(complaint("pad", "the padded size must be positive", dict(
                size=n, padding=(before, after))))


def bordered(x, d: int, before: int, after: int, mode: str):
    """Read every output position from where the mode says."""
    n = x.shape[d]
    i = arange(-before, n + after, device=x.device)
    if mode == "replicate":
        i = i.clamp(0, n - 1)
    elif mode == "circular":
        n, start = cut_size(n, before, after)
        i = (i - start) % n + start
    elif n > 1:
        i = (n - 1) - ((i % (2 * (n - 1))) - (n - 1)).abs()
    else:
        i = i * 0
    return index(x, i, dims=(d,))




def cut_size(n: int, before: int, after: int) -> tuple[int, int]:
    """Negative padding cuts first: (what is left, where it starts); that part is what repeats."""
    start = max(-before, 0)
    return n - start - max(-after, 0), start
