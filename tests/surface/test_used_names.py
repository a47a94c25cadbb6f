"""Every name that programs use most exists."""

import pytest

import flambeau
from tests.surface.names import found, used_names


@pytest.mark.parametrize("name", used_names())
def test_name_exists(name):
    assert found(flambeau, name) is not ...
