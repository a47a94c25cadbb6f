"""`import torch` gives flambeau's own modules. Each case is a process: the hook changes `sys`."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from flambeau.alias import finder, names

ROOT = Path(__file__).parent.parent.parent


def python(code: str) -> str:
    """What the code prints, run after the hook is installed."""
    text = "import flambeau, flambeau.alias\nflambeau.alias.install()\n" + textwrap.dedent(code)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-W", "error", "-c", text]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_modules_are_the_same_objects():
    python("""
        import torch, sys
        import torch.nn as nn
        import torch.nn.functional as F
        from torch import optim
        from torch.utils.data import DataLoader
        assert torch is flambeau and nn is flambeau.nn and F is flambeau.nn.functional
        assert optim is flambeau.optim
        assert DataLoader is flambeau.utils.data.DataLoader
        assert sys.modules["torch.nn"] is sys.modules["flambeau.nn"]
    """)


def test_a_module_keeps_its_own_name_and_spec():
    python("""
        import torch.nn, importlib
        assert torch.__name__ == "flambeau" and torch.__spec__.name == "flambeau"
        assert torch.nn.__spec__.name == torch.nn.__package__ == "flambeau.nn"
        from flambeau.nn import functional  # a relative import inside still works
        importlib.import_module("torch.nn.functional")
    """)


def test_pytorchs_inner_module_names_lead_to_the_package_above():
    python("""
        import flambeau.nn
        from torch.nn.modules.linear import Linear
        from torch.nn.parameter import Parameter
        from torch.optim.sgd import SGD
        from torch.optim.lr_scheduler import StepLR
        from torch.utils.data.dataset import Dataset
        assert Linear is flambeau.nn.Linear and Parameter is flambeau.nn.Parameter
        assert SGD is flambeau.optim.SGD
        assert Dataset is flambeau.utils.data.Dataset
    """)


@pytest.mark.parametrize("name", sorted(names._MOVED))
def test_every_moved_name_leads_to_a_module_we_have(name):
    finder._target(name)


def test_a_missing_module_names_the_nearest():
    said = python("""
        try:
            import torch.optm
        except ModuleNotFoundError as error:
            print(error, error.name)
    """)
    assert said == (
        "No module named 'torch.optm': flambeau has no such module. "
        "The nearest module is 'torch.optim'. torch.optm\n"
    )


def test_what_is_built_on_pytorchs_library_is_refused_with_the_reason():
    said = python("""
        try:
            import torchvision.transforms
        except ImportError as error:
            print(error)
    """)
    assert said.startswith("torchvision is built on PyTorch's compiled library")


def test_find_spec_answers_as_for_an_installed_package():
    python("""
        import importlib.util
        assert importlib.util.find_spec("torch") is not None
        import torch
        assert importlib.util.find_spec("torch.nn") is not None
    """)


def test_installing_twice_is_once_and_uninstalling_undoes_it():
    python("""
        import sys
        flambeau.alias.install()
        import torch, torch.nn
        flambeau.alias.uninstall()
        assert not [n for n in sys.modules if n.partition(".")[0] == "torch"]
        assert not [f for f in sys.meta_path if type(f).__module__.startswith("flambeau")]
    """)


def test_pytorch_loaded_before_is_refused():
    said = python("""
        import sys, types
        sys.modules["torch"] = types.ModuleType("torch")
        flambeau.alias.uninstall()
        try:
            flambeau.alias.install()
        except RuntimeError as error:
            print(error)
    """)
    assert said.startswith("flambeau.alias.install: PyTorch must not be loaded yet")
