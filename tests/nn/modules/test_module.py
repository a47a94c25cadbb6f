"""Module: registration, calling, text form, copies."""

import copy
import pickle

import pytest

import flambeau as fb
from flambeau import nn
from flambeau.nn.modules.tables import change_clock


class Affine(nn.Module):
    def __init__(self, n=3):
        super().__init__()
        self.scale = nn.Parameter(fb.ones(n))
        self.register_buffer("shift", fb.zeros(n))
        self.inner = nn.Identity()

    def forward(self, x):
        return self.inner(x * self.scale + self.shift)


def test_assignment_registers_by_kind():
    module = Affine()
    assert list(module._parameters) == ["scale"]
    assert list(module._buffers) == ["shift"]
    assert list(module._modules) == ["inner"]
    module.extra = nn.Buffer(fb.ones(1), persistent=False)
    assert "extra" in module._buffers and "extra" not in module.state_dict()
    module.number = 3
    assert module.__dict__["number"] == 3


def test_a_name_is_in_one_place_only():
    module = Affine()
    module.scale = None
    assert module._parameters == {"scale": None} and module.scale is None
    module.inner = nn.Parameter(fb.ones(1))
    assert "inner" in module._parameters and "inner" not in module._modules
    module.number = 3
    module.number = nn.ReLU()
    assert "number" not in module.__dict__ and "number" in module._modules


@pytest.mark.parametrize("name", ["scale", "inner"])
def test_a_registered_name_takes_no_other_kind(name):
    with pytest.raises(TypeError, match=f"Affine.{name}: cannot assign 'int'"):
        setattr(Affine(), name, 3)


def test_a_buffer_takes_any_tensor():
    module = Affine()
    module.shift = fb.ones(3)
    assert module.shift.tolist() == [1, 1, 1] and "shift" in module._buffers
    with pytest.raises(TypeError):
        module.shift = "text"
    module.shift = None
    assert module.shift is None


def test_delattr():
    module = Affine()
    del module.scale, module.shift, module.inner
    assert not list(module.parameters()) and not list(module.buffers())
    with pytest.raises(AttributeError, match="'Affine' object has no attribute 'scale'"):
        _ = module.scale
    with pytest.raises(AttributeError):
        del module.nothing


@pytest.mark.parametrize(
    ("name", "error"),
    [(3, TypeError), ("", KeyError), ("a.b", KeyError), ("training", KeyError)],
)
def test_names_that_are_refused(name, error):
    module = Affine()
    with pytest.raises(error):
        module.register_buffer(name, fb.ones(1))
    with pytest.raises(error):
        module.register_parameter(name, nn.Parameter(fb.ones(1)))
    with pytest.raises(error):
        module.add_module(name, nn.ReLU())


def test_values_that_are_refused():
    module = Affine()
    with pytest.raises(TypeError, match="Wrap the tensor"):
        module.register_parameter("p", fb.ones(1))
    with pytest.raises(TypeError):
        module.register_buffer("b", [1])
    with pytest.raises(TypeError):
        module.add_module("m", 3)


def test_assigning_before_init_is_refused():
    class Early(nn.Module):
        def __init__(self, value):
            self.value = value

    for value in (nn.Parameter(fb.ones(1)), nn.ReLU(), nn.Buffer(fb.ones(1))):
        with pytest.raises(AttributeError, match=r"before Module\.__init__"):
            Early(value)
    with pytest.raises(TypeError, match="no arguments"):
        nn.Module(3)


def test_call_super_init_passes_arguments_on():
    class Named:
        def __init__(self, name):
            self.name = name

    class Both(nn.Module, Named):
        call_super_init = True

        def __init__(self):
            super().__init__("x")

    assert Both().name == "x"


def test_call_runs_forward_and_a_missing_forward_says_so():
    assert Affine()(fb.ones(3)).tolist() == [1, 1, 1]
    with pytest.raises(NotImplementedError, match='"forward"'):
        nn.Module()(3)


def test_compile_replaces_the_call(monkeypatch):
    monkeypatch.setattr(fb, "compile", lambda f, **options: lambda x: (f(x), options))
    module = Affine()
    module.compile(mode="x")
    result, options = module(fb.ones(3))
    assert result.tolist() == [1, 1, 1] and options == {"mode": "x"}
    assert "_compiled_call_impl" not in module.__getstate__()


def test_text_form_nests():
    net = nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.ReLU(), nn.Dropout(0.1)))
    assert repr(net) == (
        "Sequential(\n"
        "  (0): Linear(in_features=2, out_features=3, bias=True)\n"
        "  (1): Sequential(\n"
        "    (0): ReLU()\n"
        "    (1): Dropout(p=0.1, inplace=False)\n"
        "  )\n"
        ")"
    )
    assert repr(nn.Module()) == "Module()"


def test_dir_lists_members_and_no_numbers():
    names = dir(Affine())
    assert {"scale", "shift", "inner", "forward"} <= set(names)
    assert "0" not in dir(nn.Sequential(nn.ReLU()))


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_are_independent(copied):
    module = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)).eval()
    other = copied(module)
    assert not other.training and repr(other) == repr(module)
    for (name, mine), (same, theirs) in zip(
        module.state_dict().items(), other.state_dict().items(), strict=True
    ):
        assert name == same and mine.tolist() == theirs.tolist()
    with fb.no_grad():
        other[0].weight.fill_(7)
    assert module[0].weight[0, 0] != 7


def test_copies_keep_ties_and_hooks():
    module = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    module[1].weight = module[0].weight
    module.register_forward_hook(double)
    other = copy.deepcopy(module)
    assert other[0].weight is other[1].weight is not module[0].weight
    x = fb.ones(2)
    assert other(x).tolist() == module(x).tolist()


def double(module, args, output):
    return output * 2


def test_every_change_moves_the_clock():
    module = Affine()

    def moves(change):
        before, stamp = change_clock[0], module._changed_at
        change()
        return change_clock[0] > before and module._changed_at > stamp

    assert moves(lambda: setattr(module, "number", 1))
    assert moves(lambda: setattr(module, "scale", nn.Parameter(fb.ones(3))))
    assert moves(lambda: setattr(module, "shift", fb.ones(3)))
    assert moves(lambda: module.register_buffer("b", None))
    assert moves(lambda: module.add_module("m", None))
    assert moves(lambda: module.register_forward_hook(double))
    assert moves(lambda: module.eval())
    assert moves(lambda: delattr(module, "number"))
    assert not moves(lambda: module(fb.ones(3)))
