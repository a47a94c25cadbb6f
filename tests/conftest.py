"""What compiled functions compute is tested on their programs: calls wait for them. The tests of
the tiers themselves ask for the background."""

import os

import pytest

os.environ.setdefault("FLAMBEAU_TIER", "sync")


@pytest.fixture(autouse=True)
def families():
    """No test has fewer kernels because of the sizes that others have used."""
    from flambeau.eager.native import churn

    churn.forget()
