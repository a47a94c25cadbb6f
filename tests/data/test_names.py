"""Where programs find the names of `torch.utils.data`."""

import importlib

import pytest

import flambeau.data
import flambeau.utils.data


def test_the_objects_are_the_same():
    for name in flambeau.data.__all__:
        assert getattr(flambeau.utils.data, name) is getattr(flambeau.data, name)


@pytest.mark.parametrize(("module", "name"), [
    ("dataset", "TensorDataset"), ("dataloader", "DataLoader"), ("sampler", "RandomSampler"),
    ("distributed", "DistributedSampler"), ("_utils.collate", "default_collate_fn_map")])
def test_the_modules_have_pytorchs_names(module, name):
    found = importlib.import_module(f"flambeau.utils.data.{module}")
    assert hasattr(found, name)
