"""Errors of captured programs are the user's own: same class, text, lines and side effects."""

import traceback

import pytest

import flambeau as torch


def lookup(table, index):
    doubled = table * 2
    return doubled[index]


def test_an_error_of_the_running_graph_names_the_users_line():
    compiled = torch.compile(lookup)
    table = torch.ones(3, 2)
    assert compiled(table, torch.tensor([0, 2])).shape == (2, 2)
    with pytest.raises(IndexError) as caught:
        compiled(table, torch.tensor([0, 7]))
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert any(f.line == "return doubled[index]" for f in frames)


def test_side_effects_before_the_error_happen_once():
    log = []

    def f(table, index):
        log.append(len(log))
        result = table[index]
        log.append("after")
        return result

    compiled = torch.compile(f)
    compiled(torch.ones(3), torch.tensor([1]))
    with pytest.raises(IndexError):
        compiled(torch.ones(3), torch.tensor([5]))
    assert log == [0, "after", 2]


def test_raising_again_and_again_stays_right():
    def f(x, bad):
        if bad:
            raise ValueError("no")
        return x + 1

    compiled = torch.compile(f)
    for k in range(12):
        if k % 2:
            with pytest.raises(ValueError, match="no"):
                compiled(torch.ones(2), True)
        else:
            assert compiled(torch.ones(2), False).tolist() == [2, 2]


def test_wrong_arguments_raise_type_error():
    def f(x, *, k):
        return x * k

    compiled = torch.compile(f)
    with pytest.raises(TypeError, match="k"):
        compiled(torch.ones(2))
    with pytest.raises(TypeError):
        compiled(torch.ones(2), torch.ones(2), k=1)
