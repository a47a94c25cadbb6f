import pickle
import sys
import types

import pytest

from flambeau.core import nearest
from flambeau.core.nearest import MissingName, closest, missing_name, nearest_name


@pytest.fixture
def shop(monkeypatch):
    """A package `flambeau` of two modules, standing in for the real one."""
    root, tools = types.ModuleType("flambeau"), types.ModuleType("flambeau.tools")
    root.relu, root.zeros = abs, list
    tools.Linear, tools._hidden = int, str
    monkeypatch.setattr(nearest, "_PUBLIC", set())
    root.__getattr__ = missing_name("flambeau")
    tools.__getattr__ = missing_name("flambeau.tools")
    monkeypatch.setitem(sys.modules, "flambeau", root)
    monkeypatch.setitem(sys.modules, "flambeau.tools", tools)
    return root, tools


def test_a_misspelled_name_answers_with_the_nearest_one(shop):
    with pytest.raises(AttributeError) as caught:
        shop[0].rleu  # noqa: B018
    assert str(caught.value) == (
        "module 'flambeau' has no attribute 'rleu'. The nearest name is 'flambeau.relu'."
    )


def test_the_same_name_elsewhere_comes_before_a_similar_one_here(shop):
    assert nearest_name("flambeau", "Linear") == "flambeau.tools.Linear"
    assert nearest_name("flambeau.tools", "linear") == "flambeau.tools.Linear"


def test_nothing_similar_names_nothing(shop):
    with pytest.raises(AttributeError) as caught:
        shop[1].qqqqqq  # noqa: B018
    assert str(caught.value) == "module 'flambeau.tools' has no attribute 'qqqqqq'."


def test_private_names_are_never_offered(shop):
    assert nearest_name("flambeau.tools", "hidden") is None


def test_hasattr_and_dunders_behave_as_for_any_module(shop):
    assert not hasattr(shop[0], "nonsense")
    assert not hasattr(shop[0], "__wrapped__")
    assert getattr(shop[0], "nonsense", 5) == 5


def test_the_interpreter_adds_no_second_suggestion(shop):
    import traceback

    try:
        shop[0].rleu  # noqa: B018
    except AttributeError as error:
        assert "".join(traceback.format_exception_only(error)).count("relu") == 1


def test_the_error_pickles():
    error = pickle.loads(pickle.dumps(MissingName("flambeau", "rleu")))
    assert (error.module, error.name) == ("flambeau", "rleu")


def test_a_very_close_spelling_elsewhere_is_better_than_nothing(shop):
    assert nearest_name("flambeau", "Linaer") == "flambeau.tools.Linear"


def test_closest_prefers_the_same_case_among_equals():
    assert closest("DataLaoder", ["dataloader", "DataLoader"]) == "DataLoader"
    assert closest("datalaoder", ["dataloader", "DataLoader"]) == "dataloader"


def test_closest_ignores_case():
    assert closest("crossentropyloss", ["CrossEntropyLoss", "NLLLoss"]) == "CrossEntropyLoss"
