"""Where a tensor's memory lies."""

from __future__ import annotations

from flambeau.core.errors import ArgumentError, NoDeviceError, OpError, complaint

TYPES = ("cpu", "cuda", "meta", "mps", "xpu", "xla", "hpu")


class device:
    """`device("cpu")`, `device("cuda:1")`, `device("cuda", 1)`; equal by type and index.

    As a context manager or decorator-like `with` block it becomes the default device of new
    tensors.
    """

    __slots__ = ("type", "index", "_hash", "_previous")
    default: device | None = None  # set by set_default_device or a `with` block

    def __init__(self, type, index: int | None = None):
        if isinstance(type, device):
            type, index = type.type, type.index if index is None else index
        if isinstance(type, int):
            type, index = "cuda", type
        if not isinstance(type, str):
            raise ArgumentError(complaint("device", "type must be a str or an int",
                                          dict(type=type.__class__.__name__)))
        if ":" in type:
            type, _, number = type.partition(":")
            if not number.isdigit() or index is not None:
                raise OpError(complaint("device", "the form is 'type' or 'type:index'",
                                        dict(type=f"{type}:{number}")))
            index = int(number)
        if type not in TYPES:
            raise OpError(complaint("device", f"the type must be one of {', '.join(TYPES)}",
                                    dict(type=repr(type))))
        if index is not None and index < 0:
            raise OpError(complaint("device", "the index must not be negative", dict(index=index)))
        self.type = type
        self.index = index
        self._hash = hash((type, index))

    def __eq__(self, other) -> bool:
        if self is other:
            return True
        return isinstance(other, device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"device(type='{self.type}'" + (
            ")" if self.index is None else f", index={self.index})")

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __reduce__(self):
        return (device, (self.type, self.index))

    def __enter__(self) -> device:
        self._previous = [*getattr(self, "_previous", ()), device.default]
        device.default = self
        return self

    def __exit__(self, *exc) -> None:
        device.default = self._previous.pop()


CPU = device("cpu")
META = device("meta")


PRESENT = {"cpu", "meta"}


def of(where) -> device:
    """The device, which must be present, that a user's `device=` names; None: the default."""
    if where is None:
        found = device.default or CPU
    else:
        found = where if isinstance(where, device) else device(where)
    if found.type not in PRESENT:
        raise NoDeviceError(complaint("device", "the device must be present", dict(
            device=found), "Use device='cpu'; `flambeau doctor` says which devices are present."))
    return found
