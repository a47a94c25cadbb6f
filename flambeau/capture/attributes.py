"""Attribute access as Python defines it, on objects whose changes are not real yet."""

from __future__ import annotations

import collections
import functools
import types
from typing import Any

from flambeau.capture import modes, trust
from flambeau.capture.breaks import GraphBreak, SkipFrame, UserError, foreign
from flambeau.capture.values import (
    DELETED,
    MISSING,
    InstanceDict,
    ListShadow,
    holder,
    is_python_defined,
    static,
)

SLOT_TYPES = (types.MemberDescriptorType, types.GetSetDescriptorType)
BUILTIN_WITH_ATTRIBUTES = (collections.OrderedDict, collections.defaultdict, collections.deque)


class Attributes:
    """Reads, writes and deletes attributes for the interpreter `run`."""

    def __init__(self, run: Any):
        self.run = run
        self.session = run.session

    # Reading ---------------------------------------------------------------------------------

    def get(self, owner: Any, name: str) -> Any:
        """`owner.name`, raising the program's AttributeError."""
        session = self.session
        if session.tensors.is_tensor(owner):
            return session.tensors.attribute(owner, name, self)
        if isinstance(owner, InstanceDict):
            return self.run.dict_method(owner, name)
        if id(owner) in modes.REAL or trust.is_native_class(type(owner)):
            return foreign(getattr, owner, name)
        if isinstance(owner, ListShadow) and name not in ("append", "extend"):
            session.whole(owner)
        if isinstance(owner, type):
            return self._of_class(owner, name)
        if isinstance(owner, types.ModuleType):
            return self._of_module(owner, name)
        if isinstance(owner, super):
            return self._of_super(owner, name)
        if isinstance(owner, types.FunctionType):
            return self._of_function(owner, name)
        if isinstance(owner, types.MethodType):
            return self._of_method(owner, name)
        if name == "__class__":
            return self.run.type_of(owner)
        if self.run.is_plain_object(owner) or type(owner) in BUILTIN_WITH_ATTRIBUTES:
            session.check_readable(owner)
            found = foreign(getattr, owner, name)
            if name == "__dict__" and session.is_new(owner):
                session.note_created(found)
            return found
        return self._of_instance(owner, name)

    def _of_instance(self, owner: Any, name: str) -> Any:
        cls = type(owner)
        if is_python_defined(cls, "__getattribute__"):
            return self.run.call(types.MethodType(static(cls, "__getattribute__"), owner), (name,))
        return self.generic(owner, name)

    def generic(self, owner: Any, name: str) -> Any:
        """`object.__getattribute__`, then the class's `__getattr__`."""
        found = self.lookup(owner, name)
        if found is not MISSING:
            return found
        fallback = static(type(owner), "__getattr__")
        if fallback is not None:
            return self.run.call(types.MethodType(fallback, owner), (name,))
        cls = type(owner).__name__
        raise UserError(AttributeError(f"{cls!r} object has no attribute {name!r}"))

    def lookup(self, owner: Any, name: str) -> Any:
        """The attribute by the class, the instance and the class again; MISSING if none."""
        cls = type(owner)
        member = static(cls, name, MISSING)
        if member is not MISSING and hasattr(type(member), "__set__"):
            return self._data_descriptor(owner, cls, member, name)
        own = self.own(owner, name)
        if own is not MISSING:
            return own
        if member is MISSING:
            return MISSING
        return self._bound(owner, cls, member, name)

    def own(self, owner: Any, name: str) -> Any:
        """The entry of the instance dictionary, MISSING if there is none."""
        session = self.session
        changed = session.attributes.get((id(owner), name), MISSING)
        if changed is not MISSING:
            return MISSING if changed is DELETED else changed
        entries = getattr(owner, "__dict__", None)
        if type(entries) is not dict:
            return MISSING
        source = session.source(owner)
        if name in entries:
            return (
                entries[name] if source is None else session.wrap(entries[name], source.entry(name))
            )
        if source is not None:
            session.guard(source, "absent", name)
        return MISSING

    def _data_descriptor(self, owner: Any, cls: type, member: Any, name: str) -> Any:
        session, source = self.session, self.session.source(owner)
        if isinstance(member, property):
            member = self.class_member(cls, name, member)
            if member.fget is None:
                raise UserError(AttributeError(f"property {name!r} has no getter"))
            return self.run.call(member.fget, (owner,))
        if isinstance(member, SLOT_TYPES):
            changed = session.attributes.get((id(owner), name), MISSING)
            if changed is not MISSING and changed is not DELETED:
                return changed
            if changed is DELETED:
                return MISSING
            if name == "__dict__":
                return session.instance_dict(owner)
            try:
                value = member.__get__(owner, cls)
            except AttributeError:
                if source is not None:
                    session.guard(source, "unset", name)
                return MISSING
            if source is None:
                return value
            if isinstance(member, types.MemberDescriptorType):
                return session.wrap(value, source.attribute(name))
            if type(value) in (int, float, bool, str, type(None)):
                return session.wrap(value, source.attribute(name))
            raise GraphBreak(f"attribute {name!r} of {cls.__name__} is computed by C code")
        getter = static(type(member), "__get__")
        if isinstance(getter, types.FunctionType):
            return self.run.call(getter, (member, owner, cls))
        if isinstance(owner, tuple):
            return foreign(member.__get__, owner, cls)
        raise GraphBreak(f"descriptor {type(member).__name__} {name!r}")

    def class_member(self, cls: type, name: str, value: Any) -> Any:
        """A member found in the class hierarchy, guarded where a program could replace it."""
        base = holder(cls, name)
        assert base is not None
        session = self.session
        if isinstance(value, (types.FunctionType, property, staticmethod, classmethod)) or (
            hasattr(type(value), "__get__")
        ):
            if not trust.is_trusted_class(base):
                session.test(
                    session.constant(base),
                    functools.partial(_holds_member, name=name, value=value),
                    f"{base.__qualname__}.{name} is unchanged",
                    (id(base), name),
                )
            return value
        changed = session.attributes.get((id(base), name), MISSING)
        if changed is not MISSING:
            return changed
        if session.is_new(base):
            return value
        where = session.constant(base).entry(name)
        return session.wrap_member(value, where, base.__module__)

    def _bound(self, owner: Any, cls: type, member: Any, name: str) -> Any:
        """A class member seen through an instance."""
        if isinstance(member, types.FunctionType):
            return types.MethodType(self.class_member(cls, name, member), owner)
        if isinstance(member, staticmethod):
            return self.class_member(cls, name, member).__func__
        if isinstance(member, classmethod):
            return types.MethodType(self.class_member(cls, name, member).__func__, cls)
        if isinstance(member, functools.cached_property):
            value = self.run.call(member.func, (owner,))
            self.set_own(owner, name, value)
            return value
        if isinstance(member, functools.partialmethod):
            raise GraphBreak(f"functools.partialmethod {name!r}")
        if isinstance(member, (types.MethodDescriptorType, types.WrapperDescriptorType)):
            return member.__get__(owner, cls)
        getter = static(type(member), "__get__")
        if isinstance(getter, types.FunctionType):
            return self.run.call(getter, (member, owner, cls))
        if getter is not None and not isinstance(member, types.BuiltinFunctionType):
            return foreign(member.__get__, owner, cls)
        return self.class_member(cls, name, member)

    def _of_class(self, cls: type, name: str) -> Any:
        meta = type(cls)
        changed = self.session.attributes.get((id(cls), name), MISSING)
        if changed is not MISSING and changed is not DELETED:
            return changed
        from_meta = static(meta, name, MISSING)
        if from_meta is not MISSING and hasattr(type(from_meta), "__set__"):
            if name in ("__dict__",):
                raise GraphBreak("the dictionary of a class")
            if isinstance(from_meta, property) and isinstance(from_meta.fget, types.FunctionType):
                return self.run.call(from_meta.fget, (cls,))
            return foreign(getattr, cls, name)
        member = static(cls, name, MISSING)
        if member is not MISSING:
            return self._class_attribute(cls, name, member)
        if from_meta is MISSING and is_python_defined(meta, "__getattr__"):
            return self.run.call(types.MethodType(static(meta, "__getattr__"), cls), (name,))
        value = foreign(getattr, cls, name)
        return value

    def _class_attribute(self, cls: type, name: str, member: Any) -> Any:
        if isinstance(member, classmethod):
            member = self.class_member(cls, name, member)
            if isinstance(member.__func__, types.FunctionType):
                return types.MethodType(member.__func__, cls)
            return foreign(getattr, cls, name)
        if isinstance(member, staticmethod):
            return self.class_member(cls, name, member).__func__
        getter = static(type(member), "__get__")
        if isinstance(getter, types.FunctionType):
            if isinstance(type(cls), type) and type(cls).__name__ in ("EnumType", "EnumMeta"):
                return foreign(getattr, cls, name)
            return self.run.call(getter, (member, None, cls))
        if isinstance(member, (types.FunctionType, *SLOT_TYPES, property)) or getter is not None:
            member = self.class_member(cls, name, member)
            return member if isinstance(member, types.FunctionType) else foreign(getattr, cls, name)
        return self.class_member(cls, name, member)

    def _of_module(self, module: types.ModuleType, name: str) -> Any:
        session = self.session
        entries = vars(module)
        source = session.source(module) or session.constant(module)
        changed = session.variables.get((id(entries), name), MISSING)
        if changed is not MISSING and changed is not DELETED:
            return changed
        if name not in entries:
            return session.wrap(foreign(getattr, module, name), source.attribute(name))
        where = source.step("attribute", "__dict__").item(name)
        return session.wrap_member(entries[name], where, module.__name__)

    def _of_super(self, owner: super, name: str) -> Any:
        this, instance = owner.__thisclass__, owner.__self__
        if name == "__class__":
            return super
        start = owner.__self_class__
        order = type.__dict__["__mro__"].__get__(start)
        for base in order[order.index(this) + 1 :]:
            if name not in base.__dict__:
                continue
            member = base.__dict__[name]
            if isinstance(instance, type) and instance is start:
                if isinstance(member, classmethod):
                    return types.MethodType(member.__func__, instance)
                if isinstance(member, staticmethod):
                    return member.__func__
                if isinstance(member, types.FunctionType):
                    return member
                return foreign(getattr, owner, name)
            if isinstance(member, property):
                return self.run.call(member.fget, (instance,))
            return self._bound(instance, base, member, name)
        raise UserError(AttributeError(f"'super' object has no attribute {name!r}"))

    def _of_function(self, function: types.FunctionType, name: str) -> Any:
        session, source = self.session, self.session.source(function)
        changed = session.attributes.get((id(function), name), MISSING)
        if changed is not MISSING and changed is not DELETED:
            return changed
        if name in ("__name__", "__qualname__", "__module__", "__doc__", "__code__"):
            return getattr(function, name)
        if name == "__dict__":
            return session.instance_dict(function)
        if name in ("__globals__", "__closure__"):
            raise GraphBreak(f"function attribute {name!r}")
        own = self.own(function, name)
        if own is not MISSING:
            return own
        value = foreign(getattr, function, name)
        if source is not None and name in ("__defaults__", "__kwdefaults__"):
            return session.wrap(value, source.attribute(name))
        return value

    def _of_method(self, method: types.MethodType, name: str) -> Any:
        if name == "__func__":
            return method.__func__
        if name == "__self__":
            return method.__self__
        if name in ("__call__", "__class__", "__eq__", "__hash__"):
            return foreign(getattr, method, name)
        return self.get(method.__func__, name)

    # Writing ---------------------------------------------------------------------------------

    def set(self, owner: Any, name: str, value: Any) -> None:
        """`owner.name = value`."""
        session = self.session
        if session.tensors.is_tensor(owner):
            session.tensors.set_attribute(owner, name, value, self)
            return
        if id(owner) in modes.REAL:
            setattr(owner, name, value)
            return
        if isinstance(owner, types.ModuleType):
            session.write_global(vars(owner), name, value)
            return
        if isinstance(owner, type):
            self._set_on_class(owner, name, value)
            return
        if isinstance(owner, types.FunctionType):
            self._set_on_function(owner, name, value)
            return
        setter = static(type(owner), "__setattr__")
        if isinstance(setter, types.FunctionType):
            self.run.call(types.MethodType(setter, owner), (name, value))
        else:
            self.generic_set(owner, name, value)

    def generic_set(self, owner: Any, name: str, value: Any) -> None:
        """`object.__setattr__`."""
        member = static(type(owner), name, MISSING)
        if isinstance(member, property):
            if member.fset is None:
                cls = type(owner).__name__
                raise UserError(
                    AttributeError(f"property {name!r} of {cls!r} object has no setter")
                )
            self.run.call(member.fset, (owner, value))
        elif isinstance(member, types.MemberDescriptorType):
            self._store(owner, name, value)
        elif member is not MISSING and hasattr(type(member), "__set__"):
            setter = static(type(member), "__set__")
            if not isinstance(setter, types.FunctionType):
                raise GraphBreak(f"assignment to the descriptor {name!r}")
            self.run.call(setter, (member, owner, value))
        elif type(getattr(owner, "__dict__", None)) is not dict:
            if self.session.is_new(owner):
                foreign(object.__setattr__, owner, name, value)
            else:
                raise GraphBreak(f"cannot set {name!r} on {type(owner).__name__}")
        else:
            self._store(owner, name, value)

    def set_own(self, owner: Any, name: str, value: Any) -> None:
        """Write an entry of the instance dictionary."""
        self._store(owner, name, value)

    def _store(self, owner: Any, name: str, value: Any) -> None:
        session = self.session
        if session.is_new(owner):
            if isinstance(static(type(owner), name), types.MemberDescriptorType):
                foreign(object.__setattr__, owner, name, value)
            elif isinstance(owner, type) or not hasattr(owner, "__dict__"):
                foreign(setattr, owner, name, value)
            else:
                owner.__dict__[name] = value
            return
        if session.source(owner) is None:
            raise SkipFrame(f"{type(owner).__name__} object without a known origin is changed")
        session.attributes[id(owner), name] = value
        session.effect(("attribute", id(owner), name), ("attribute", session.keep(owner), name))

    def _set_on_class(self, cls: type, name: str, value: Any) -> None:
        if is_python_defined(type(cls), "__setattr__"):
            raise GraphBreak(f"{type(cls).__name__} intercepts assignment to a class")
        if self.session.source(cls) is None and not self.session.is_new(cls):
            self.session.note(cls, self.session.constant(cls))
        if name.startswith("__") or hasattr(type(static(cls, name)), "__set__"):
            raise GraphBreak(f"assignment to {cls.__name__}.{name}")
        if isinstance(value, types.FunctionType):
            raise GraphBreak("a method is replaced")
        self._store(cls, name, value)

    def _set_on_function(self, function: types.FunctionType, name: str, value: Any) -> None:
        if self.session.is_new(function):
            foreign(setattr, function, name, value)
        elif name.startswith("__"):
            raise GraphBreak(f"assignment to {name} of a function")
        else:
            if self.session.source(function) is None:
                self.session.note(function, self.session.constant(function))
            self._store(function, name, value)

    # Deleting --------------------------------------------------------------------------------

    def delete(self, owner: Any, name: str) -> None:
        """`del owner.name`."""
        if self.session.tensors.is_tensor(owner) or isinstance(owner, (type, types.ModuleType)):
            raise GraphBreak(f"deletion of {name!r}")
        deleter = static(type(owner), "__delattr__")
        if isinstance(deleter, types.FunctionType):
            self.run.call(types.MethodType(deleter, owner), (name,))
        else:
            self.generic_delete(owner, name)

    def generic_delete(self, owner: Any, name: str) -> None:
        """`object.__delattr__`."""
        member = static(type(owner), name, MISSING)
        if isinstance(member, property):
            if member.fdel is None:
                raise UserError(AttributeError(f"property {name!r} has no deleter"))
            self.run.call(member.fdel, (owner,))
            return
        slot = isinstance(member, types.MemberDescriptorType)
        present = self.lookup(owner, name) if slot else self.own(owner, name)
        if present is MISSING:
            raise UserError(AttributeError(name))
        if self.session.is_new(owner):
            foreign(object.__delattr__, owner, name)
            return
        self._store(owner, name, DELETED)

    # Instance dictionaries -------------------------------------------------------------------

    def names(self, owner: Any) -> list[str]:
        """Keys of the instance dictionary as the program sees them, in order."""
        session, source = self.session, self.session.source(owner)
        entries = owner.__dict__
        if source is not None:
            where = source.step("attribute", "__dict__")
            session.guard(where, "keys", session.keep(tuple(entries)))
        changed = {n: v for (i, n), v in session.attributes.items() if i == id(owner)}
        names = [n for n in entries if changed.get(n) is not DELETED]
        return names + [n for n, v in changed.items() if v is not DELETED and n not in entries]


def _holds_member(cls: type, *, name: str, value: Any) -> bool:
    return cls.__dict__.get(name) is value
