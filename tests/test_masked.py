"""flambeau.masked: the elements that remain decide, and nothing is left of the others."""

import math

import pytest

import flambeau as torch
from flambeau import masked

X = torch.tensor([[1.0, 2.0, 6.0], [3.0, 4.0, 5.0]])
MASK = torch.tensor([[True, False, True], [False, False, False]])


def test_folds_of_what_remains():
    assert masked.sum(X, 1, mask=MASK).tolist() == [7.0, 0.0]
    assert masked.prod(X, 1, mask=MASK).tolist() == [6.0, 1.0]
    assert masked.amax(X, 1, mask=MASK).tolist() == [6.0, -math.inf]
    assert masked.amin(X, mask=MASK).item() == 1.0
    assert masked.cumsum(X, 1, mask=MASK).tolist() == [[1.0, 1.0, 7.0], [0.0, 0.0, 0.0]]
    assert masked.mean(X, 1, mask=MASK)[0] == 3.5 and masked.mean(X, 1, mask=MASK)[1].isnan()
    assert masked.var(X, 1, mask=MASK)[0] == 12.5
    assert masked.median(X, 1, mask=MASK)[0] == 1.0


def test_softmax_gives_nothing_to_masked_elements():
    out = masked.softmax(X, 1, mask=MASK)
    assert out[0].sum().item() == pytest.approx(1) and out[0, 1] == 0 and out[1].isnan().all()


def test_the_mask_broadcasts_and_must_be_bool():
    assert masked.sum(X, 1, mask=torch.tensor([True, False, False])).tolist() == [1.0, 3.0]
    with pytest.raises(TypeError, match="sum: mask must be a bool tensor"):
        masked.sum(X, mask=X)
    with pytest.raises(ValueError, match="mask must not have more dimensions"):
        masked.sum(X[0], mask=MASK)


def test_gradients_reach_only_what_remains():
    x = X.clone().requires_grad_()
    masked.mean(x, mask=MASK).backward()
    assert x.grad.tolist() == [[0.5, 0.0, 0.5], [0.0, 0.0, 0.0]]
