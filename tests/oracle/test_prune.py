"""Pruning zeroes what PyTorch's pruning zeroes, under the same names."""

import importlib

import pytest

import flambeau

torch = pytest.importorskip("torch")


def both(change):
    """What `change(torch, prune, module)` returns and leaves, in either package."""
    results = []
    for package in (flambeau, torch):
        prune = importlib.import_module(f"{package.__name__}.nn.utils.prune")
        package.manual_seed(0)
        module = package.nn.Sequential(package.nn.Linear(6, 4), package.nn.Linear(4, 3))
        said = change(package, prune, module)
        state = {k: v.tolist() for k, v in module.state_dict().items()}
        effective = [layer.weight.tolist() for layer in module]
        results.append((said, state, effective, [n for n, _ in module.named_parameters()]))
    return results


def l1(torch, prune, module):
    prune.l1_unstructured(module[0], "weight", amount=0.3)
    return prune.is_pruned(module), prune.is_pruned(module[1])


def random(torch, prune, module):
    prune.random_unstructured(module[0], "weight", amount=5)


def structured(torch, prune, module):
    prune.ln_structured(module[0], "weight", amount=2, n=2, dim=0)
    prune.random_structured(module[1], "weight", amount=1, dim=1)


def twice(torch, prune, module):
    prune.l1_unstructured(module[0], "weight", amount=4)
    prune.l1_unstructured(module[0], "weight", amount=0.5)
    prune.ln_structured(module[0], "weight", amount=1, n=1, dim=1)
    return [type(h).__name__ for h in module[0]._forward_pre_hooks.values()]


def everywhere(torch, prune, module):
    pairs = [(module[0], "weight"), (module[1], "weight")]
    prune.global_unstructured(pairs, pruning_method=prune.L1Unstructured, amount=0.4)


def by_mask(torch, prune, module):
    prune.custom_from_mask(module[1], "weight", torch.eye(3, 4))
    prune.identity(module[0], "bias")


def permanent(torch, prune, module):
    prune.l1_unstructured(module[0], "weight", amount=0.3)
    module(torch.ones(2, 6)).sum().backward()
    with torch.no_grad():
        module[0].weight_orig += 1.0
    module(torch.ones(2, 6))
    prune.remove(module[0], "weight")
    return prune.is_pruned(module), type(module[0].weight).__name__


@pytest.mark.parametrize("change", [l1, random, structured, twice, everywhere, by_mask, permanent])
def test_same(change):
    ours, theirs = both(change)
    assert ours[0] == theirs[0] and ours[3] == theirs[3]
    assert list(ours[1]) == list(theirs[1])
    for name in theirs[1]:
        torch.testing.assert_close(torch.tensor(ours[1][name]), torch.tensor(theirs[1][name]))
    for mine, expected in zip(ours[2], theirs[2]):
        torch.testing.assert_close(torch.tensor(mine), torch.tensor(expected))


def test_amounts_that_make_no_sense():
    import flambeau.nn.utils.prune as prune

    for amount, kind in ((-1, ValueError), (1.5, ValueError), (99, ValueError), ("a", TypeError)):
        layer = flambeau.nn.Linear(2, 2)
        with pytest.raises(kind):
            prune.l1_unstructured(layer, "weight", amount=amount)
        assert [n for n, _ in layer.named_parameters()] == ["weight", "bias"]
