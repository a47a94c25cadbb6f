"""Writing in place, and through views, keeps history right or says why it cannot."""

import pytest

import flambeau as torch


def test_a_write_through_a_view_is_part_of_the_bases_history():
    w = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    x = torch.zeros(2, 3)
    x[1] = w * w
    x[0, :2].add_(w[:2])
    (x * torch.tensor([[1.0], [10.0]])).sum().backward()
    assert w.grad.tolist() == [21, 41, 60]


def test_a_view_taken_before_a_write_to_its_base_follows():
    w = torch.tensor([2.0, 3.0], requires_grad=True)
    base = torch.zeros(2)
    view = base[1:]
    base.add_(w)
    assert view.requires_grad and view.tolist() == [3]
    (view * 5).sum().backward()
    assert w.grad.tolist() == [0, 5]


def test_multiplying_in_place_keeps_the_old_value_for_the_other_factor():
    x = torch.tensor([2.0, 3.0], requires_grad=True)
    y = torch.tensor([5.0, 7.0], requires_grad=True)
    z = x * 1.0
    z.mul_(y)
    z.sum().backward()
    assert x.grad.tolist() == [5, 7] and y.grad.tolist() == [2, 3]


def test_a_saved_value_that_was_overwritten_is_detected():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 1.0
    z = (y * y).sum()
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


def test_overwriting_by_constants_cuts_history():
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 2
    y[0] = 0
    y.sum().backward()
    assert x.grad.tolist() == [0, 2, 2]


def test_leaves_and_their_views_are_protected():
    x = torch.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf"):
        x.add_(1)
    with pytest.raises(RuntimeError, match="leaf"):
        x[0] = 5
    with torch.no_grad():
        x[0] = 5
    assert x.tolist() == [5, 1, 1]


def test_expanded_memory_is_not_written():
    x = torch.tensor(0.5).expand(3)
    with pytest.raises(RuntimeError, match="clone"):
        x.add_(1)
    assert x.tolist() == [0.5] * 3


def test_detach_shares_memory_and_version_but_not_history():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 1.0
    z = (y * y).sum()
    y.detach().add_(1)
    assert y.tolist() == [2, 3] and not y.detach().requires_grad
    with pytest.raises(RuntimeError, match="modified"):
        z.backward()


def test_data_writes_unseen():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    z = (x * x).sum()
    x.data.add_(1)
    z.backward()
    assert x.tolist() == [2, 3] and x.grad.tolist() == [4, 6]


@pytest.mark.parametrize("window", [
    lambda t: t.t(), lambda t: t[::2], lambda t: t.diagonal(), lambda t: t.unfold(1, 2, 1)[:, 0],
    lambda t: t.reshape(-1)[3:7], lambda t: t.unsqueeze(1).squeeze(1), lambda t: t.chunk(3)[1],
    lambda t: t.permute(1, 0)[1], lambda t: t.view(3, 1, 3).transpose(0, 2)])
def test_every_kind_of_view_passes_writes_and_gradients(window):
    x = torch.rand(3, 3, dtype=torch.float64, requires_grad=True)

    def f(t):
        y = t * 1.0
        window(y).mul_(3)
        return (y * y).sum(), window(y).sum()

    assert torch.autograd.gradcheck(f, (x,))


@pytest.mark.parametrize("overwrite", [
    lambda y: y.zero_(), lambda y: y.fill_(2.0), lambda y: y.copy_(torch.ones(2)),
    lambda y: y.normal_(), lambda y: y.view(2).copy_(torch.ones(2))])
def test_a_tensor_overwritten_by_constants_still_requires_grad(overwrite):
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    view = y[:1]
    overwrite(y)
    assert y.requires_grad and view.requires_grad
    (y.sum() + view.sum() + x.sum()).backward()
    assert x.grad.tolist() == [1, 1]


def test_views_taken_without_gradients_are_not_written_with_them():
    x = torch.ones(3, requires_grad=True)
    y, plain = x * 2, torch.ones(3)
    with torch.no_grad():
        of_result, of_leaf, of_plain = y[:2], x[:2], plain[:2]
        of_result.mul_(2)
        of_leaf.mul_(2)
    for view in (of_result, of_leaf):
        with pytest.raises(RuntimeError, match="created in no_grad mode"):
            view.mul_(2)
    of_plain.mul_(2)
    with pytest.raises(RuntimeError, match="created in no_grad mode"):
        of_plain.mul_(x[:2])
    assert plain.tolist() == [2, 2, 1]


def test_a_tensor_is_not_its_own_gradient():
    x = torch.ones(3)
    with pytest.raises(RuntimeError, match="its own grad"):
        x.grad = x
