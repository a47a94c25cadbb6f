"""The names of an accelerator that is not there: questions are answered, work is refused.

`is_available()` is False and `device_count()` is 0; seeding, emptying caches and asking for memory
figures do nothing, as in PyTorch built without that device; whatever needs the device raises
NoDeviceError.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from flambeau.core import absence
from flambeau.core.absence import refused_function
from flambeau.core.device import device as Device
from flambeau.core.errors import NoDeviceError, complaint
from flambeau.tensor import Tensor

HINT = "Use device='cpu'; `flambeau doctor` says which devices are present."


def refusal(kind: str, name: str) -> NoDeviceError:
    """The error of `torch.<kind>.<name>`."""
    return NoDeviceError(complaint(f"{kind}.{name}", _must(kind), {}, HINT))


def _must(kind: str) -> str:
    return "an accelerator must be present" if kind == "accelerator" else (
        f"a {kind} device must be present")


def refused(kind: str, name: str) -> Callable[..., Any]:
    """A function that needs the device, and says so when it is called."""
    return refused_function(f"{kind}.{name}", _must(kind), HINT, NoDeviceError)


def refused_class(kind: str, name: str) -> type:
    """A class that can be named in annotations and in isinstance, and not be built."""
    return absence.refused_class(f"{kind}.{name}", _must(kind), HINT, NoDeviceError)


class OnDevice:
    """`with cuda.device(index)`: for the index -1 or None, no device, nothing happens."""

    kind = ""

    def __init__(self, device: Any):
        self.index = index_of(device)

    def __enter__(self) -> OnDevice:
        if self.index >= 0:
            raise refusal(self.kind, "device")
        return self

    def __exit__(self, *exc: object) -> None:
        return None


class OnDeviceOf(OnDevice):
    """`with cuda.device_of(tensor)`: for a tensor elsewhere, nothing happens."""

    def __init__(self, obj: Tensor):
        super().__init__(-1)


class StreamContext:
    """`with cuda.stream(None)`: nothing happens. There are no other streams without a device."""

    def __init__(self, stream: Any):
        self.stream = stream

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc: object) -> None:
        return None


def index_of(device: Any) -> int:
    """The number of a device given as a number, a name or a device; -1 for none."""
    if device is None:
        return -1
    if isinstance(device, int):
        return device
    index = Device(device).index
    return 0 if index is None else index


class AbsentDevice:
    """The questions that every accelerator answers, for one `kind` that is not there."""

    def __init__(self, kind: str):
        self.kind = kind

    def is_available(self) -> bool:
        """Is there such a device? No."""
        return False

    def is_initialized(self) -> bool:
        """Has such a device been used? No."""
        return False

    def device_count(self) -> int:
        """How many there are: 0."""
        return 0

    def is_bf16_supported(self, including_emulation: bool = True) -> bool:
        """Does it compute in bfloat16? There is none."""
        return False

    def is_tf32_supported(self) -> bool:
        """Does it compute in TF32? There is none."""
        return False

    def is_current_stream_capturing(self) -> bool:
        """Is a device graph being captured? No."""
        return False

    def get_arch_list(self) -> list[str]:
        """The architectures that kernels were compiled for: none, they are generated."""
        return []

    def get_gencode_flags(self) -> str:
        """Compiler flags: none, kernels are generated."""
        return ""

    def manual_seed(self, seed: int) -> None:
        """Seed the device's generator; without a device, only check the seed."""
        int(seed)

    manual_seed_all = manual_seed

    def seed(self) -> None:
        """Seed from the system; without a device, nothing."""

    seed_all = empty_cache = seed

    def get_rng_state_all(self) -> list[Tensor]:
        """The generators' states, one for each device: none."""
        return []

    def set_rng_state_all(self, new_states: Any) -> None:
        """Set the generators' states, one for each device."""
        for _ in new_states:
            raise refusal(self.kind, "set_rng_state_all")

    def set_device(self, device: Any) -> None:
        """Make a device the current one; a negative number is no device."""
        if index_of(device) >= 0:
            raise refusal(self.kind, "set_device")

    def stream(self, stream: Any) -> StreamContext:
        """The context in which `stream` is current."""
        return StreamContext(stream)

    def memory_allocated(self, device: Any = None) -> int:
        """Bytes of device memory in tensors: 0."""
        return 0

    max_memory_allocated = memory_reserved = max_memory_reserved = memory_allocated

    def memory_stats(self, device: Any = None) -> dict[str, Any]:
        """Figures of the device's allocator: none."""
        return OrderedDict()

    memory_stats_as_nested_dict = memory_stats

    def memory_snapshot(self, *args: Any, **kwargs: Any) -> list[Any]:
        """The state of the device's allocator: none."""
        return []

    def reset_peak_memory_stats(self, device: Any = None) -> None:
        """Forget the peaks; without a device, nothing."""

    reset_accumulated_memory_stats = reset_peak_memory_stats


REFUSED = (
    "can_device_access_peer", "change_current_allocator", "clock_rate", "current_device",
    "current_stream", "device_memory_used", "get_device_capability", "get_device_name",
    "get_device_properties", "get_per_process_memory_fraction", "get_rng_state",
    "get_stream_from_external", "graph_pool_handle", "init", "initial_seed",
    "make_graphed_callables", "mem_get_info", "memory_usage", "power_draw",
    "set_per_process_memory_fraction", "set_rng_state", "set_stream", "synchronize",
    "temperature", "use_mem_pool", "utilization",
)  # fmt: skip
CLASSES = ("Event", "MemPool", "Stream", "graph")


def namespace(kind: str) -> dict[str, Any]:
    """The public names of `torch.<kind>` where there is no such device."""
    answers = AbsentDevice(kind)
    names: dict[str, Any] = {n: getattr(answers, n) for n in dir(answers) if n[0] != "_"}
    names.pop("kind")
    names.update({n: refused(kind, n) for n in REFUSED})
    names.update({n: refused_class(kind, n) for n in CLASSES})
    names["device"] = type("device", (OnDevice,), {"kind": kind})
    names["device_of"] = type("device_of", (OnDeviceOf,), {"kind": kind})
    names["StreamContext"] = StreamContext
    names["default_generators"] = ()
    return names
