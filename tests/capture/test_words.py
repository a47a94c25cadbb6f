"""Every change of an object shows in the words that stand for it."""

import collections
import types

import pytest

from flambeau.capture import words


class Owner:
    shared = 1


class Slotted:
    __slots__ = ("place",)


def owner():
    made = Owner()
    made.a, made.b = [], 2.5
    made.__dict__  # noqa: B018  attributes move into a dictionary
    return made


DICT_WRITES = {
    "new key": lambda d: d.__setitem__("new", 1),
    "other value": lambda d: d.__setitem__("a", object()),
    "deleted": lambda d: d.__delitem__("a"),
    "update": lambda d: d.update(a=object()),
    "or": lambda d: d.__ior__({"a": object()}),
    "pop": lambda d: d.pop("a"),
    "popitem": lambda d: d.popitem(),
    "setdefault": lambda d: d.setdefault("new", 1),
    "clear": lambda d: d.clear(),
}
needed = pytest.mark.skipif(words.hold() is None, reason="another layout of memory")


def tells(measure, value, change):
    """Whether the native comparison holds before the change and not after it."""
    table = words.table(measure(value))
    assert words.hold()(table)
    assert words.times_held(table) == 1
    change(value)
    return not words.hold()(table)


@needed
@pytest.mark.parametrize("write", DICT_WRITES)
@pytest.mark.parametrize("kind", [dict, collections.defaultdict, collections.OrderedDict])
def test_dictionaries(write, kind):
    assert tells(
        words.of_dict,
        kind(int, a=1) if "d" == kind.__name__[0] and kind is not dict else kind(a=1),
        DICT_WRITES[write],
    )


@needed
@pytest.mark.parametrize("write", DICT_WRITES)
def test_instance_dictionaries(write):
    assert tells(words.of_attributes, owner(), lambda o: DICT_WRITES[write](o.__dict__))


ATTRIBUTE_WRITES = {
    "set": lambda o: setattr(o, "a", object()),
    "new": lambda o: setattr(o, "new", 1),
    "delete": lambda o: delattr(o, "a"),
    "object": lambda o: object.__setattr__(o, "a", object()),
    "other dictionary": lambda o: setattr(o, "__dict__", {"a": 1}),
    "delete and put back": lambda o: (delattr(o, "b"), setattr(o, "c", 2.5)),
}


@needed
@pytest.mark.parametrize("write", ATTRIBUTE_WRITES)
def test_attributes(write):
    assert tells(words.of_attributes, owner(), ATTRIBUTE_WRITES[write])


@needed
def test_attributes_written_by_specialised_code():
    made, others = owner(), [owner() for _ in range(5)]

    def write(o):
        o.a = object()

    for _ in range(100):
        for o in others:
            write(o)
        assert tells(words.of_attributes, made, write)


LIST_WRITES = {
    "element": lambda v: v.__setitem__(1, object()),
    "append": lambda v: v.append(1),
    "pop": lambda v: v.pop(),
    "reverse": lambda v: v.reverse(),
    "clear": lambda v: v.clear(),
    "slice": lambda v: v.__setitem__(slice(None), [1, 2, 3]),
}


@needed
@pytest.mark.parametrize("write", LIST_WRITES)
def test_lists(write):
    assert tells(words.of_list, [object(), object(), object()], LIST_WRITES[write])


@needed
def test_slots_cells_classes_and_code():
    slotted = Slotted()
    assert tells(lambda v: words.of_slot(v, "place"), slotted, lambda v: setattr(v, "place", 1))
    assert tells(lambda v: words.of_slot(v, "place"), slotted, lambda v: delattr(v, "place"))
    cell = types.CellType(object())
    assert tells(words.of_cell, cell, lambda c: setattr(c, "cell_contents", object()))
    assert tells(words.of_attributes, Owner, lambda c: setattr(c, "shared", object()))
    assert tells(words.of_type, owner(), lambda o: setattr(o, "__class__", type("B", (), {})))

    def function():
        return 1

    other = (lambda: 2).__code__
    assert tells(words.of_code, function, lambda f: setattr(f, "__code__", other))


def test_an_ordered_dictionary_may_change_its_order_unseen():
    assert words.of_dict(collections.OrderedDict(a=1, b=2)) is None


def test_what_has_no_words():
    assert words.of_dict([]) is None
    assert words.of_list(()) is None
    assert words.of_attributes(1) is None
    assert words.of_slot(Owner(), "shared") is None
