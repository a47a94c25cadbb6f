"""`testing.assert_close` agrees with PyTorch's: on what is close, and on what it says."""

import pytest

import flambeau

torch = pytest.importorskip("torch")

nan = float("nan")
PAIRS = [
    lambda t: (t.ones(3), t.ones(3)),
    lambda t: (t.ones(3), t.tensor([1.0, 1.0, 2.0])),
    lambda t: (t.ones(3), t.ones(3) + 1e-6),
    lambda t: (t.ones(3), t.ones(3) + 1e-4),
    lambda t: (t.ones(3), t.ones(4)),
    lambda t: (t.ones(3), t.ones(3, dtype=t.float64)),
    lambda t: (t.tensor([nan]), t.tensor([nan])),
    lambda t: (t.tensor([float("inf")]), t.tensor([float("inf")])),
    lambda t: (t.tensor([float("inf")]), t.tensor([1.0])),
    lambda t: (t.tensor([1, 2]), t.tensor([1, 3])),
    lambda t: (t.tensor([True]), t.tensor([False])),
    lambda t: (t.ones(2, dtype=t.bfloat16), t.ones(2, dtype=t.bfloat16) * 1.015625),
    lambda t: (t.ones(2, dtype=t.float16), t.ones(2, dtype=t.float16) * 1.01),
    lambda t: (t.tensor([1 + 1j]), t.tensor([1 + 2j])),
    lambda t: (t.empty(0), t.empty(0)),
    lambda t: (t.tensor(1.0), t.tensor(2.0)),
    lambda t: (1.0, 1.0),
    lambda t: (1.0, 2.0),
    lambda t: (1, 2),
    lambda t: (1, 1.0),
    lambda t: (None, None),
    lambda t: (None, 1),
    lambda t: ([t.ones(1), 2.0], [t.ones(1), 2.0]),
    lambda t: ([t.ones(1)], [t.zeros(1)]),
    lambda t: ([1], [1, 2]),
    lambda t: ({"a": 1}, {"a": 1}),
    lambda t: ({"a": 1}, {"b": 1}),
    lambda t: ({"a": [1]}, {"a": [2]}),
    lambda t: (t.ones(1), 1.0),
    lambda t: ("a", "b"),
    lambda t: (t.tensor([0.0]), t.tensor([1e-6])),
]


def said(torch, pair, **options) -> tuple[str, str]:
    try:
        torch.testing.assert_close(*pair(torch), **options)
    except Exception as error:
        kind = next(c for c in type(error).__mro__ if c.__module__ == "builtins")
        return kind.__name__, str(error)
    return "", ""


@pytest.mark.parametrize("options", [{}, {"rtol": 0.5, "atol": 0.1}, {"equal_nan": True},
                                     {"check_dtype": False}], ids=str)  # fmt: skip
@pytest.mark.parametrize("pair", PAIRS)
def test_agrees(pair, options):
    kind, text = said(flambeau, pair, **options)
    expected, theirs = said(torch, pair, **options)
    assert kind == expected, (text, theirs)
    if kind == "AssertionError" and "Mismatched elements" in theirs:
        assert text.splitlines()[:3] == theirs.splitlines()[:3]
        for mine, line in zip(text.splitlines()[3:], theirs.splitlines()[3:]):
            assert mine.split(":")[0] == line.split(":")[0]
            assert mine.split(" at ")[1:] == line.split(" at ")[1:]


def test_tolerances_come_in_pairs():
    for package in (torch, flambeau):
        with pytest.raises(ValueError):
            package.testing.assert_close(1.0, 1.0, rtol=0.1)


@pytest.mark.parametrize("kind", ["float32", "int64", "uint8", "bool", "complex64", "bfloat16"])
@pytest.mark.parametrize("options", [{}, {"low": 1, "high": 3}, {"noncontiguous": True}], ids=str)
def test_make_tensor(kind, options):
    if kind == "bool" and "low" in options:
        options = {"low": 0, "high": 2}
    makes = [t.testing.make_tensor(3, 4, dtype=getattr(t, kind), device="cpu", **options)
             for t in (flambeau, torch)]  # fmt: skip
    ours, theirs = makes
    assert str(ours.dtype) == str(theirs.dtype) and tuple(ours.shape) == (3, 4)
    assert ours.is_contiguous() == theirs.is_contiguous()
    if not ours.is_complex():
        low, high = options.get("low", -9), options.get("high", 9)
        values = ours.float()
        assert values.min() >= low and values.max() <= high
