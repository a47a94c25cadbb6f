"""Subclasses, `__torch_function__`, modes, and copies of tensors do what they do in PyTorch."""

import copy
import importlib
import pickle
from types import SimpleNamespace

import pytest

import flambeau

torch = pytest.importorskip("torch")


def classes(torch) -> SimpleNamespace:
    """The same classes over either package."""

    class Plain(torch.Tensor):
        pass

    class Logged(torch.Tensor):
        log: list[str] = []

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            cls.log.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs or {})

    class Labelled(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            result = super().__torch_function__(func, types, args, kwargs or {})
            if isinstance(result, cls):
                result.label = next(a.label for a in args if isinstance(a, cls))
            return result

    class Duck:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            known = (torch.add, torch.cat)
            return f"duck {func.__name__}" if func in known else NotImplemented

    class Ordinary(torch.Tensor):
        __torch_function__ = torch._C._disabled_torch_function_impl

    class Recorder(importlib.import_module(f"{torch.__name__}.overrides").TorchFunctionMode):
        def __init__(self):
            super().__init__()
            self.log = []

        def __torch_function__(self, func, types, args=(), kwargs=None):
            self.log.append(func.__name__)
            return func(*args, **(kwargs or {}))

    return SimpleNamespace(**{k: v for k, v in locals().items() if k != "torch"})


THEIRS, OURS = classes(torch), classes(flambeau)


def kind(value):
    """The name of a value's type; of a tuple's or list's items, theirs."""
    if type(value) in (list, tuple):
        return [kind(v) for v in value]
    return type(value).__name__


def outcome(function, torch, cls):
    """The result, or the builtin class of the error."""
    try:
        return function(torch, cls)
    except Exception as error:
        return next(c for c in type(error).__mro__ if c.__module__ == "builtins")


def plain(torch, cls):
    return torch.ones(2, 3).as_subclass(cls.Plain)


KINDS = {
    "add": lambda torch, p: p + 1,
    "radd": lambda torch, p: 1 + p,
    "mixed": lambda torch, p: torch.ones(3) + p,
    "sum": lambda torch, p: p.sum(),
    "index": lambda torch, p: p[0],
    "view": lambda torch, p: p.view(-1),
    "T": lambda torch, p: p.T,
    "mT": lambda torch, p: p.mT,
    "split": lambda torch, p: list(p.split(1)),
    "max": lambda torch, p: list(p.max(0)),
    "size": lambda torch, p: p.size(),
    "eq": lambda torch, p: p == p,
    "clone": lambda torch, p: p.clone(),
    "detach": lambda torch, p: p.detach(),
    "data": lambda torch, p: p.data,
    "ones_like": lambda torch, p: torch.ones_like(p),
    "new_ones": lambda torch, p: p.new_ones(2),
    "item": lambda torch, p: p.sum().item(),
    "in place": lambda torch, p: p.add_(1),
    "copy": lambda torch, p: copy.copy(p),
    "numpy": lambda torch, p: p.numpy(),
    "to": lambda torch, p: p.to(torch.float64),
    "linear": lambda torch, p: torch.nn.functional.linear(p, torch.ones(4, 3)),
    "module": lambda torch, p: torch.nn.Linear(3, 2)(p),
    "cat": lambda torch, p: torch.cat([torch.ones(1, 3), p]),
    "iter": lambda torch, p: list(p),
    "pickle": lambda torch, p: pickle.loads(pickle.dumps(torch.nn.Parameter(torch.ones(2)))),
}


@pytest.mark.parametrize("name", KINDS)
def test_the_kind_of_what_comes_out_of_a_subclass(name):
    ours = KINDS[name](flambeau, plain(flambeau, OURS))
    assert kind(ours) == kind(KINDS[name](torch, plain(torch, THEIRS)))


def logged(torch, cls):
    x = torch.ones(2).as_subclass(cls.Logged)
    cls.Logged.log.clear()
    (x + 1).sum(), 1 - x, x * 2, x / 2, x**2, x @ x, -x, x == 1, x < 1
    x.view(2, 1), x[0], torch.exp(x), torch.stack([x])
    x += 1
    x[0] = 2
    return list(cls.Logged.log)


def labelled(torch, cls):
    x = torch.ones(3).as_subclass(cls.Labelled)
    x.label = "hi"
    return [y.label for y in (x * 2, x[0], torch.exp(x), x.view(3, 1))]


def in_mode(torch, cls):
    with cls.Recorder() as outer, cls.Recorder() as inner:
        torch.ones(2) + 1
        torch.nn.functional.relu(torch.zeros(1))
        torch.tensor([1.0]).sum()
    return outer.log, inner.log


def constructed(torch, cls):
    made = cls.Plain([1.0, 2.0])
    return kind(made), made.tolist(), tuple(cls.Plain(2, 3).shape)


def parameter_kinds(torch, cls):
    p = torch.nn.Parameter(torch.ones(2))
    made = (p + 1, p.detach(), p.data, p.clone(), p[0], p.view(2), copy.deepcopy(p), copy.copy(p))
    return [kind(m) for m in made], p.is_leaf, p.requires_grad, (p == p).tolist()


def without_grad(torch, cls):
    p = torch.nn.Parameter(torch.ones(2))
    with torch.no_grad():
        return kind(p.add_(1)), p.tolist()


def copies_of_gradients(torch, cls):
    x = torch.ones(2, requires_grad=True)
    (x * 3).sum().backward()
    stored = pickle.loads(pickle.dumps(x))
    deep = copy.deepcopy(x)
    return deep.grad.tolist(), copy.copy(x).grad, stored.grad, stored.requires_grad


def shared_memory_in_a_copy(torch, cls):
    y = torch.arange(4.0)
    whole, part = copy.deepcopy([y, y[1:3]])
    whole.fill_(9)
    return part.tolist()


def disabled(torch, cls):
    with torch._C.DisableTorchFunctionSubclass():
        return kind(plain(torch, cls) + 1)


def asked(torch, cls):
    overrides = importlib.import_module(f"{torch.__name__}.overrides")
    values = (plain(torch, cls), torch.ones(1), cls.Duck(), torch.nn.Parameter(torch.ones(1)))
    return [(overrides.has_torch_function((v,)), overrides.is_tensor_like(v)) for v in values]


BEHAVIOURS = [logged, labelled, in_mode, constructed, parameter_kinds, without_grad,
              copies_of_gradients, shared_memory_in_a_copy, disabled, asked]  # fmt: skip
BEHAVIOURS += [
    lambda torch, cls: torch.add(cls.Duck(), 2),
    lambda torch, cls: torch.add(torch.ones(1), cls.Duck()),
    lambda torch, cls: torch.cat([cls.Duck(), torch.ones(1)]),
    lambda torch, cls: torch.sub(cls.Duck(), torch.ones(1)),
    lambda torch, cls: torch.nn.functional.relu(cls.Duck()),
    lambda torch, cls: kind(torch.ones(2).as_subclass(cls.Ordinary) + 1),
    lambda torch, cls: torch.nn.Parameter(torch.ones(2)).add_(1),
    lambda torch, cls: torch.nn.Parameter(torch.ones(2, dtype=torch.long)),
    lambda torch, cls: kind(torch.nn.Parameter(torch.ones(2, dtype=torch.long), False)),
    lambda torch, cls: repr(torch.nn.Parameter(torch.ones(2))),
    lambda torch, cls: copy.deepcopy(torch.ones(2, requires_grad=True) * 2),
    lambda torch, cls: copy.copy(torch.ones(2, requires_grad=True) * 2).requires_grad,
    lambda torch, cls: pickle.loads(pickle.dumps(torch.arange(6).view(2, 3).t())).stride(),
]


@pytest.mark.parametrize("behaviour", BEHAVIOURS)
def test_behaviour(behaviour):
    assert outcome(behaviour, flambeau, OURS) == outcome(behaviour, torch, THEIRS)
