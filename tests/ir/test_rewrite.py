"""The rewrite driver: bottom-up, to rest, iterative, and loud about rules that undo each other."""

import pytest

from flambeau.ir import Node, RewriteLimit, rewrite, rule


def const(value):
    return Node.make("const", "int64", (), value)


def add(a, b):
    return Node.make("add", "int64", (a, b))


@rule("add")
def fold_constants(node):
    """c + d is its value"""
    a, b = node.args
    return const(a.attr + b.attr) if a.kind == b.kind == "const" else None


@rule("add")
def drop_zero(node):
    """x + 0 is x"""
    return node.args[0] if node.args[1].attr == 0 and node.args[1].kind == "const" else None


X = Node.make("x", "int64")


def test_rules_apply_until_none_does():
    assert (
        rewrite(add(add(X, add(const(1), const(-1))), const(0)), [fold_constants, drop_zero]) is X
    )


def test_a_rule_is_named_by_its_function_and_equation():
    assert (fold_constants.name, fold_constants.equation) == (
        "fold_constants",
        "c + d is its value",
    )


def test_deep_expressions_do_not_recurse():
    x = X
    for _ in range(20_000):
        x = add(x, const(0))
    assert rewrite(x, [drop_zero]) is X


def test_shared_operands_stay_shared():
    shared = add(X, const(0))
    made = rewrite(Node.make("mul", "int64", (shared, shared)), [drop_zero])
    assert made.args[0] is made.args[1] is X


def test_rules_that_undo_each_other_are_named():
    @rule("a")
    def forth(node):
        return Node.make("b", "int64")

    @rule("b")
    def back(node):
        return Node.make("a", "int64")

    with pytest.raises(RewriteLimit, match=r"forth x\d+, back x\d+|back x\d+, forth x\d+"):
        rewrite(Node.make("a", "int64"), [forth, back], limit=100)
