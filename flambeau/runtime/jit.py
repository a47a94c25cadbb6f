"""LLVM in this process: IR text in, addresses out. llvmlite is imported on first use.

Invariants: every symbol an object leaves undefined is known before it is linked; linked code is
never freed; one lock guards every call into LLVM but the emission of objects, which takes most of
the time and may run on several threads at once, each on a context of its own. `fork` waits for the
lock and for emissions: a child that found LLVM's own locks taken would wait for ever.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import re
import threading
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any, Generic, TypeVar

from flambeau.core import logs
from flambeau.core.errors import OpError, complaint
from flambeau.runtime import elf, object_cache

T = TypeVar("T")
_lock = threading.RLock()
_EXPORTED = re.compile(r"^define (?!internal)[^@\n]*@([\w.]+)\(", re.MULTILINE)
_DECLARED = re.compile(r"^declare [^@\n]*@([\w.]+)\(", re.MULTILINE)
_symbols: dict[str, int] = {}
_providers: dict[str, Callable[[], object]] = {}
watchers: list[Callable[[], None]] = []
"""Called before code is generated or compiled, which takes time; reading the cache does not."""


@functools.cache
def _llvm() -> ModuleType:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


@functools.cache
def host() -> tuple[str, str, str]:
    """(architecture, CPU name, feature list) of this machine, in LLVM's names."""
    with _lock:
        llvm = _llvm()
        architecture = llvm.get_process_triple().split("-")[0]
        features = llvm.get_host_cpu_features().flatten()
        return architecture, llvm.get_host_cpu_name(), features


@functools.cache
def versions() -> str:
    with _lock:
        llvm = _llvm()
        import llvmlite

        return f"{llvmlite.__version__} {llvm.llvm_version_info} {llvm.get_process_triple()}"


class Library:
    """Linked code of one module; it lives as long as the process. `key` finds its object in the
    cache; `names` are the exported names and what they are called in the object."""

    def __init__(
        self, addresses: dict[str, int], from_cache: bool, key: str, names: dict[str, str]
    ) -> None:
        self._addresses = addresses
        self.from_cache = from_cache
        self.key, self.names = key, names

    def address(self, name: str) -> int:
        """The address of an exported function."""
        return self._addresses[name]

    def function(self, name: str, result: Any = None, *parameters: Any) -> Callable[..., Any]:
        """A ctypes function: it releases the GIL and costs about 0.4 us a call."""
        return ctypes.CFUNCTYPE(result, *parameters)(self._addresses[name])


class Once(Generic[T]):
    """A function whose result is made once, whichever thread asks first."""

    def __init__(self, make: Callable[[], T]):
        self._make = make
        self._made: list[T] = []
        self.__doc__ = make.__doc__

    def __call__(self) -> T:
        if not self._made:
            with _lock:
                if not self._made:
                    self._made.append(self._make())
        return self._made[0]

    def is_made(self) -> bool:
        return bool(self._made)


def tell_watchers() -> None:
    for watcher in tuple(watchers):
        watcher()


def alone() -> threading.RLock:  # type: ignore[valid-type]
    """The lock to hold while calling llvmlite without this module."""
    return _lock


def define_symbol(name: str, address: int) -> None:
    """Make `address` known to the linker; our own names start with ``flambeau_``."""
    with _lock:
        _llvm().add_symbol(name, address)
        _symbols[name] = address


def provide(names: Iterable[str], provider: Callable[[], object]) -> None:
    """Call `provider` when code first needs one of `names`; it must define them all."""
    for name in names:
        _providers[name] = provider


def load(
    text: str, *, cpu: str = "", features: str = "", level: int = 2, passes: int = 0
) -> Library:
    """Compile and link IR text without triple and data layout.

    `level` is the code generator's effort (0 to 3); `passes` the level of the IR pass pipeline, 0
    for none. Without `cpu` the code is for this machine. The object comes from the disk cache when
    the same text was compiled before for the same CPU by the same versions.
    """
    if not cpu:
        _, cpu, features = host()
    key = _key(text, cpu, features, level, passes)
    renamed, names = _unique_names(text, key[:16])
    image = object_cache.read(key)
    found = image is not None
    if not found:
        tell_watchers()
    logs.show("llvm", ", ".join(names), text)
    logs.show("asm", ", ".join(names), lambda: assembly(text, cpu=cpu, features=features))
    origin = "from the cache" if found else "compiled"
    with logs.timed(f"{', '.join(names)}, {len(text)} bytes of IR, {origin}"):
        if image is None:
            image = _compile(renamed, cpu, features, level, passes)
        with _lock:
            addresses = _link(image, names, renamed)
    if not found:
        object_cache.write(key, image)
    return Library(addresses, found, key, names)


def known(key: str, names: dict[str, str]) -> Library | None:
    """The library of an object in the cache, without its text; None where there is none."""
    image = object_cache.read(key)
    if image is None or not elf.is_elf(image):
        return None
    with _lock:
        return Library(_link(image, names, ""), True, key, names)


def assembly(text: str, *, cpu: str, features: str, triple: str = "", level: int = 2) -> str:
    """The assembly LLVM makes of `text`; another `triple` cross-compiles."""
    with _lock:
        llvm = _llvm()
        if triple:
            llvm.initialize_all_targets()
            llvm.initialize_all_asmprinters()
        machine = _machine(cpu, features, level, triple)
        return machine.emit_assembly(_parse(text, machine))


def _key(text: str, *facts: object) -> str:
    state = hashlib.blake2b(digest_size=20)
    state.update(repr((*facts, versions())).encode())
    state.update(text.encode())
    return state.hexdigest()


def _unique_names(text: str, suffix: str) -> tuple[str, dict[str, str]]:
    """Exported names with a suffix: all libraries share one symbol table."""
    names = {name: f"{name}.{suffix}" for name in _EXPORTED.findall(text)}
    if not names:
        return text, names
    pattern = re.compile("@(" + "|".join(map(re.escape, names)) + r")(?![\w.])")
    return pattern.sub(lambda m: "@" + names[m[1]], text), names


def _machine(cpu: str, features: str, level: int, triple: str = "") -> Any:
    llvm = _llvm()
    target = llvm.Target.from_triple(triple or llvm.get_process_triple())
    return target.create_target_machine(
        cpu=cpu, features=features, opt=level, jit=True, codemodel="jitdefault"
    )


_idle_machines: dict[tuple[str, str, int], list[Any]] = {}
"""Target machines for emission, each for one thread at a time; making one costs a millisecond."""


def _parse(text: str, machine: Any, context: Any = None) -> Any:
    head = f'target triple = "{machine.triple}"\ntarget datalayout = "{machine.target_data}"\n'
    return _llvm().parse_assembly(head + text, context)


def _compile(text: str, cpu: str, features: str, level: int, passes: int) -> bytes:
    with _lock:
        idle = _idle_machines.setdefault((cpu, features, level), [])
        machine = idle.pop() if idle else _machine(cpu, features, level)
        module = _parse(text, machine, _llvm().create_context())
        if passes:
            _optimise(module, machine, passes)
        _emissions.begin()
    try:
        return _emitted(module, machine)
    finally:
        _emissions.end()
        with _lock:
            idle.append(machine)
            del module  # and its context


def _optimise(module: Any, machine: Any, passes: int) -> None:
    llvm = _llvm()
    options = llvm.create_pipeline_tuning_options(speed_level=passes)
    options.loop_vectorization = options.slp_vectorization = True
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)


def _emitted(module: Any, machine: Any) -> bytes:
    """The object. llvmlite holds one lock during each call; the emission itself needs none."""
    from llvmlite.binding import ffi

    emit = getattr(ffi.lib.LLVMPY_TargetMachineEmitToMemory, "_cfn", None)
    if emit is None:
        with _lock:
            return machine.emit_object(module)
    with ffi.OutputString() as message:
        buffer = emit(machine, module, 1, message)
        if not buffer:
            raise OpError(complaint("jit", "the module must compile", {"LLVM": str(message)}))
    try:
        start, size = ffi.lib.LLVMPY_GetBufferStart(buffer), ffi.lib.LLVMPY_GetBufferSize(buffer)
        return ctypes.string_at(start, size)
    finally:
        ffi.lib.LLVMPY_DisposeMemoryBuffer(buffer)


class _Emissions:
    """How many are under way; none begins while the lock of this module is held."""

    def __init__(self) -> None:
        self.count = 0
        self.changed = threading.Condition()

    def begin(self) -> None:
        with self.changed:
            self.count += 1

    def end(self) -> None:
        with self.changed:
            self.count -= 1
            self.changed.notify_all()

    def wait(self) -> None:
        with self.changed:
            self.changed.wait_for(lambda: not self.count)


_emissions = _Emissions()


def stop() -> None:
    """No other thread is in LLVM when this returns, nor will be until `go_on`."""
    _lock.acquire()
    _emissions.wait()


def go_on() -> None:
    _lock.release()


@functools.cache
def _engine() -> Any:
    """The one engine. Its memory must outlive every thread, so it is never disposed."""
    llvm = _llvm()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _machine("", "", 0))
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(engine))
    return engine


def _link(image: bytes, names: dict[str, str], text: str) -> dict[str, int]:
    llvm = _llvm()
    _require_symbols(image, text)
    engine = _engine()
    engine.add_object_file(llvm.ObjectFileRef.from_data(image))
    engine.finalize_object()
    addresses = {name: engine.get_function_address(unique) for name, unique in names.items()}
    missing = [name for name, address in addresses.items() if not address]
    if missing:
        raise OpError(complaint("jit", "exported functions must link", {"missing": missing}))
    return addresses


def _require_symbols(image: bytes, text: str) -> None:
    """Raise unless everything the object needs has an address."""
    needed = elf.undefined_symbols(image) if elf.is_elf(image) else _declared(text)
    for name in needed:
        if name in _symbols:
            continue
        if name in _providers:
            _providers[name]()
        elif hasattr(ctypes.pythonapi, name):  # CPython's and the C library's functions
            define_symbol(name, _process_address(name))
        elif not _llvm().address_of_symbol(name):
            raise OpError(complaint("jit", "every symbol must be known", {"unknown": name}))


def _declared(text: str) -> list[str]:
    return [n for n in _DECLARED.findall(text) if not n.startswith("llvm.")]


def _process_address(name: str) -> int:
    address = ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value
    assert address is not None
    return address


os.register_at_fork(before=stop, after_in_parent=go_on, after_in_child=go_on)
