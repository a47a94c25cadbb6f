"""What the interpreter knows about tensors: which are traced, and what runs on them."""

from __future__ import annotations

import types
from typing import Any

import numpy as np

from flambeau.autograd.hooks import Extra
from flambeau.autograd.node import Constant, Node, PrimitiveNode
from flambeau.capture import trust
from flambeau.capture.breaks import GraphBreak, NeedGradients, UserError, foreign
from flambeau.capture.callbacks import Callback
from flambeau.capture.foresight import Foresight
from flambeau.capture.scalars import computed, is_symbol
from flambeau.capture.sources import Source
from flambeau.capture.traced import TRACED, OutsideNode, Recorder, TracedStorage, traced
from flambeau.capture.values import (
    BY_IDENTITY,
    DELETED,
    MISSING,
    PLAIN,
    UNREAD,
    InstanceDict,
    ListShadow,
    static,
)
from flambeau.core import context
from flambeau.core.spec import Spec, spec
from flambeau.tensor.overrides import TorchFunctionMode
from flambeau.tensor.tensor import Tensor, storage_of


class _Hooked:
    """Stands for the hooks of a tensor from outside."""

    def __getattr__(self, name: str) -> Any:
        raise GraphBreak("a tensor has gradient hooks", "Register hooks inside, or on modules.")


HOOKED: Any = _Hooked()


class Input:
    """A tensor that existed before the frame."""

    __slots__ = ("fake", "grad", "place", "real", "requires_grad", "source")

    def __init__(self, real: Tensor, fake: Tensor, source: Source):
        self.real, self.fake, self.source = real, fake, source
        self.grad: Any = UNREAD
        self.requires_grad = fake._requires_grad
        self.place = (fake._storage, fake._offset, fake._spec)


NATIVE_VALUES = (*PLAIN, np.generic, slice, np.dtype)
VALUE_CLASSES = ("dtype", "device", "Size", "memory_format", "layout", "finfo", "iinfo")
REGISTERS_HOOKS = frozenset(
    "register_hook register_post_accumulate_grad_hook retain_grad _make_subclass share_memory_ "
    "data_ptr untyped_storage storage numpy __array__ __dlpack__ __reduce_ex__ __deepcopy__ "
    "as_subclass pin_memory".split()
)

OF_RESULTS = ("register_hook", "retain_grad")
"""What may be asked of the frame's own tensors."""


class Tensors:
    """Tensors of one capture."""

    def __init__(self, with_gradients: bool = False):
        self.recorder = Recorder()
        self.foresight = Foresight(
            lambda *what: self.session.scalars.compute(*what), self.recorder.constants
        )
        self.inputs: dict[int, Input] = {}
        self.by_fake: dict[int, Input] = {}
        self.storages: dict[int, TracedStorage] = {}
        self.with_gradients = with_gradients
        self.session: Any = None
        self.run: Any = None

    def attach(self, session: Any) -> None:
        self.session = session

    def is_tensor(self, value: Any) -> bool:
        return isinstance(value, Tensor)

    def is_tensor_class(self, cls: type) -> bool:
        return issubclass(cls, Tensor)

    # Inputs ----------------------------------------------------------------------------------

    def wrap(self, t: Tensor, source: Source) -> Tensor:
        """The traced tensor for one that was found at `source`."""
        if t._array is TRACED or id(t) in self.recorder.values:
            return t
        known = self.inputs.get(id(t))
        if known is not None:
            if known.source is not source:
                self.session._same(source, known.source)
            return known.fake
        self._check_kind(t, source)
        of = self._spec(t, source)
        fake = traced(of, self._storage(t), type(t))
        fake._offset = t._offset
        made = self.inputs[id(t)] = self.by_fake[id(fake)] = Input(t, fake, source)
        self.session.note(t, source)
        self.session.note(fake, source)
        self.session.guard(source, "tensor" if of is t._spec else "like", tensor_facts(t, of))
        self.recorder.inputs.append(self.recorder.define(fake))
        self._foresee(made)
        self._history(made, t, fake)
        return fake

    def _foresee(self, made: Input) -> None:
        """A tensor of one number tells it before the graph runs."""
        shares = [k for k in self.inputs.values() if k.place[0] is made.place[0]]
        if len(shares) > 1:
            for known in shares:
                self.foresight.forget(self.recorder.value_of(known.fake))
        elif made.place[2].numel == 1 and made.place[2].device.type == "cpu":
            value = self.recorder.value_of(made.fake)
            number = made.real.detach().item()
            if isinstance(number, (bool, int, float)):
                term = self.session.scalars.of_tensor(number, made.source)
                self.foresight.add(value, term)

    def _known_before(self, t: Tensor) -> Any:
        """The term of a number that is known before the graph runs, or None."""
        self.foresight.follow(self.recorder.equations)
        return self.foresight.known.get(self.recorder.value_of(t))

    def _spec(self, t: Tensor, source: Source) -> Spec:
        """The spec of a traced input: sizes that change from call to call are symbolic."""
        session, real = self.session, t._spec
        if not real.is_contiguous or t._storage is not None and t._base is not None:
            return real
        name, sizes = repr(source), source.attribute("_spec").attribute("shape")
        chosen = [
            n >= 2
            and (session.all_symbolic or f"{name}#{k}" in session.dynamic)
            and repr(sizes.item(k)) not in session.pinned
            for k, n in enumerate(real.shape)
        ]
        if not any(chosen) or type(t).__name__ in ("Parameter", "Buffer"):
            return real
        shape = [
            session.scalars.size(n, sizes.item(k)) if symbolic else n
            for k, (n, symbolic) in enumerate(zip(real.shape, chosen))
        ]
        return spec(real.dtype, shape, None, real.device)

    def _check_kind(self, t: Tensor, source: Source) -> None:
        cls = type(t)
        if cls is not Tensor and not getattr(cls, "_plain_results", False):
            if getattr(cls, "__torch_function__", None) is not None and not (
                trust.is_trusted_class(cls)
            ):
                raise GraphBreak(f"{source!r} is a tensor subclass {cls.__name__}")
        if t._array is None and t.device.type != "meta":
            raise GraphBreak(f"{source!r} has no memory")

    def _storage(self, t: Tensor) -> TracedStorage:
        real = storage_of(t)
        found = self.storages.get(id(real))
        if found is None:
            found = self.storages[id(real)] = TracedStorage(real.nbytes)
            self.session.keep(real)
        return found

    def _history(self, made: Input, t: Tensor, fake: Tensor) -> None:
        fake._requires_grad = made.requires_grad = t._requires_grad
        if t._base is not None:
            fake._base = self.wrap(t._base, made.source.attribute("_base"))
            fake._node_version = -1 if t._node_version == -1 else fake._storage.version
        if t._node is not None:
            fake._node = OutsideNode([], t._node.out_specs)
            fake._output_nr = t._output_nr
        if t._extra is not None and (t._extra.hooks or t._extra.post_hooks):
            fake._extra = self._hooks(t, made.source.attribute("_extra"))
        if not t._requires_grad or t._node is not None:
            fake._grad = made.grad = None
            if t._grad is not None or t._node is not None:
                self._gradient(made, t, fake)
        elif self.with_gradients:
            self._gradient(made, t, fake)
        else:
            fake._grad = UNREAD

    def _hooks(self, t: Tensor, source: Source) -> Any:
        """The hooks of a tensor from outside, which the engine calls while it is traced."""
        if t._extra.accumulator is not None and t._extra.accumulator() is not None:
            return HOOKED
        made = Extra()
        for name in ("hooks", "post_hooks"):
            found = self.session.wrap(getattr(t._extra, name), source.attribute(name))
            setattr(made, name, {k: Callback(self.run, hook) for k, hook in found.items()})
        return made

    def _gradient(self, made: Input, t: Tensor, fake: Tensor) -> None:
        where = made.source.attribute("_grad")
        made.grad = fake._grad = self.session.wrap(t._grad, where)

    def guard_aliasing(self, graph: Any) -> None:
        """Different inputs stay different; if any is written, their memory stays apart too."""
        sources = tuple(known.source for known in self.inputs.values())
        if len(sources) > 1:
            self.session.guard(sources[0], "distinct", sources)
        if graph.writes():
            groups: dict[int, list[Source]] = {}
            for known in self.inputs.values():
                groups.setdefault(id(known.place[0]), []).append(known.source)
            pattern = tuple(tuple(g) for g in groups.values())
            if len(sources) > 1:
                self.session.guard(sources[0], "apart", pattern)

    def original(self, t: Tensor) -> Tensor:
        """The tensor from outside that a traced one stands for, or itself."""
        found = self.by_fake.get(id(t))
        return t if found is None else found.real

    # What programs do with tensors -----------------------------------------------------------

    def truth(self, t: Tensor) -> bool:
        known = self._known_before(t) if t._array is TRACED else None
        if known is not None:
            scalars = self.session.scalars
            is_bool = isinstance(known.hint, bool)
            return scalars.decided(known if is_bool else scalars.compute("ne", known, 0))
        raise GraphBreak(
            "control flow depends on the value of a tensor",
            "Use torch.where, or compute the condition outside.",
        )

    def number(self, kind: type, t: Tensor) -> Any:
        """`float(t)`, `int(t)`."""
        value = self.item(t)
        own = self.session.scalars.type_of(value)
        return value if own is kind else computed(kind.__name__, value)

    def item(self, t: Tensor) -> Any:
        """`t.item()`: a number that only the running graph knows."""
        if t._array is not TRACED or t._spec.numel != 1:
            return foreign(Tensor.item, t)
        kinds = {0: bool, 1: int, 2: float, 3: complex}
        value = self.recorder.value_of(t)
        kind = kinds[int(t.dtype.category)]
        return self.session.scalars.from_tensor(value, kind, self._known_before(t))

    def attribute(self, t: Tensor, name: str, attributes: Any) -> Any:
        if name in ("grad", "_grad"):
            if t._grad is UNREAD:
                raise NeedGradients
            return t._grad
        if name in REGISTERS_HOOKS and (name not in OF_RESULTS or id(t) in self.by_fake):
            raise GraphBreak(f"Tensor.{name}", "Do this outside of the compiled function.")
        if name == "__dict__":
            return self.session.instance_dict(t)
        own = self._own(t, name)
        if own is not MISSING:
            return own
        member = static(type(t), name, MISSING)
        if member is MISSING:
            kind = type(t).__name__
            raise UserError(AttributeError(f"{kind!r} object has no attribute {name!r}"))
        if isinstance(member, types.FunctionType):
            return types.MethodType(member, t)
        if isinstance(member, property) and not trust.is_native(member.fget):
            return attributes.run.call(member.fget, (t,))
        return self.native(getattr, (t, name), {})

    def _own(self, t: Tensor, name: str) -> Any:
        changed = self.session.attributes.get((id(t), name), MISSING)
        if changed is not MISSING:
            return MISSING if changed is DELETED else changed
        known = self.by_fake.get(id(t))
        if known is None:
            return t.__dict__.get(name, MISSING)
        if name in known.real.__dict__:
            return self.session.wrap(known.real.__dict__[name], known.source.entry(name))
        if static(type(t), name, MISSING) is MISSING:
            self.session.guard(known.source, "absent", name)
        return MISSING

    def set_attribute(self, t: Tensor, name: str, value: Any, attributes: Any) -> None:
        if name in ("grad", "_grad") and t._grad is UNREAD and value is not None:
            raise NeedGradients
        member = static(type(t), name, MISSING)
        if isinstance(member, types.MemberDescriptorType):
            foreign(setattr, t, name, value)
        elif member is not MISSING and hasattr(type(member), "__set__"):
            if value is not None and not isinstance(value, (Tensor, bool)):
                raise GraphBreak(f"assignment to Tensor.{name}")
            self.native(setattr, (t, name, value), {})
            if name == "data":  # another place in memory, and a value of its own
                self.recorder.define(t, self.recorder.value_of(value))
        elif id(t) in self.by_fake:
            self.session.attributes[id(t), name] = value
            self.session.effect(("attribute", id(t), name), ("attribute", t, name))
        else:
            t.__dict__[name] = value

    def construct(self, cls: type, args: tuple, kwargs: dict) -> Any:
        """`Tensor(...)`, `Parameter(...)`."""
        if not (trust.is_native_class(cls) or cls.__module__.startswith("flambeau.nn")):
            raise GraphBreak(f"a {cls.__name__} is made")
        if cls.__name__ == "Parameter":
            raise GraphBreak("a Parameter is made", "Make parameters in __init__.")
        return self.native(cls, args, kwargs)

    def native(self, function: Any, args: tuple, kwargs: dict) -> Any:
        """Run a function of the tensor library for real, on traced tensors."""
        session = self.session
        for value in (*args, *kwargs.values()):
            self._check_argument(session.whole(value), function, 0)
        result = self._adopted(foreign(function, *args, **kwargs))
        if isinstance(function, type) and function.__name__ not in VALUE_CLASSES:
            session.note_created(result)
        return result

    def _check_argument(self, value: Any, function: Any, depth: int) -> None:
        kind = type(value)
        if kind in NATIVE_VALUES or isinstance(value, (Tensor, np.generic, *BY_IDENTITY)):
            return
        if kind in (list, tuple, dict, ListShadow, set) or isinstance(value, tuple):
            if depth < 5:
                elements = (*value, *value.values()) if kind is dict else value
                for element in elements:
                    self._check_argument(element, function, depth + 1)
                return
        if trust.is_native_class(kind) or isinstance(value, (int, float, Node)):
            return
        if hasattr(value, "__next__") and self.session.is_new(value):
            return
        if isinstance(value, types.FunctionType) and trust.is_native(value):
            return
        if isinstance(value, TorchFunctionMode) and trust.is_trusted_class(kind):
            return
        if isinstance(value, InstanceDict):
            raise GraphBreak("an instance dictionary is handed to the tensor library")
        name = getattr(function, "__name__", str(function))
        raise GraphBreak(f"{kind.__name__} object as an argument of {name}")

    def _adopted(self, value: Any) -> Any:
        """Results: tensors made from data join the graph, containers are the frame's own."""
        kind = type(value)
        if value is TRACED:
            return value
        if isinstance(value, Tensor):
            return self._adopted_tensor(value)
        if kind in (list, dict, set):
            if kind is list:
                value[:] = [self._adopted(v) for v in value]
            elif kind is dict:
                for key in value:
                    value[key] = self._adopted(value[key])
            return self.session.note_created(value)
        if isinstance(value, tuple) and any(isinstance(v, (Tensor, list)) for v in value):
            made = [self._adopted(v) for v in value]
            if any(a is not b for a, b in zip(made, value)):
                return tuple.__new__(kind, made)
            return value
        if hasattr(value, "__next__") and id(value) not in self.session.sources:
            self.session.note_created(value)
        return value

    def _adopted_tensor(self, t: Tensor) -> Tensor:
        recorder = self.recorder
        if t._array is TRACED or isinstance(t._storage, TracedStorage):
            t._array = TRACED
            recorder.value_of(t)
            return t
        if id(t) in self.inputs:
            return self.inputs[id(t)].fake
        if t.device.type == "meta":
            return t
        return recorder.adopt(t)


def tensor_facts(t: Tensor, of: Spec) -> tuple:
    """What the guard of a tensor compares; sizes that may change are None."""
    sizes = tuple(None if is_symbol(n) else n for n in of.shape)
    return (type(t), t._spec, t._requires_grad, t._node is None, sizes)


KNOWN = (PrimitiveNode, OutsideNode, Constant)


def foreign_history(t: Tensor, inputs: dict[int, Input]) -> list[Node | Tensor]:
    """Nodes in the history of a result that recorded equations cannot bring back, and leaves that
    the frame has made."""
    found, seen, stack = [], set(), [t._node]
    while stack:
        node = stack.pop()
        if node is None or id(node) in seen:
            continue
        seen.add(id(node))
        if not isinstance(node, KNOWN) or node.tensor_hooks is not None:
            found.append(node)
        edges = [e for e in node.edges if e is not None]
        found += [e[0] for e in edges if e[1] < 0 and id(e[0]) not in inputs]
        stack += [e[0] for e in edges if e[1] >= 0]
    return found


def is_spent(t: Tensor) -> bool:
    """Whether the history of a result has been used up by a backward pass."""
    seen, stack = set(), [t._node]
    while stack:
        node = stack.pop()
        if node is None or id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, PrimitiveNode) and node.rule.saves and node.saved is None:
            return True
        stack += [e[0] for e in node.edges if e is not None and e[1] >= 0]
    return False


def modes() -> tuple:
    """The thread's switches that a captured program depends on."""
    state = context.state
    return (state.grad_enabled, state.inference, state.stack)
