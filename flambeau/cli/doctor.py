"""`flambeau doctor`: what flambeau sees here, and what to do about what is missing.

Every check gives one finding and none of them raises: a machine in trouble is what this is for.
"""

import argparse
import ctypes
import importlib.metadata
import os
import platform
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from flambeau.version import __version__

_SIGNS = {"ok": "ok", "missing": "--", "broken": "!!"}
_REQUIRED = ["numpy", "llvmlite", "ml_dtypes", "bytecode", "safetensors", "tqdm"]
_REQUIRED += ["typing_extensions"]
_OPTIONAL = {
    "pillow": "the demo draws no picture; pip install 'flambeau[data]'",
    "mpi4py": "training stays on one machine; pip install 'flambeau[mpi]'",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check saw. `state` is ok, missing (something optional) or broken."""

    topic: str
    seen: str
    state: str = "ok"
    advice: str = ""

    def __str__(self) -> str:
        line = f"{_SIGNS[self.state]}  {self.topic:12} {self.seen}"
        return f"{line}\n{'':17}-> {self.advice}" if self.advice else line


def main(arguments: list[str]) -> int:
    """0 when flambeau can work here, 1 when something it needs is broken."""
    parser = argparse.ArgumentParser(
        prog="flambeau doctor",
        description="Show what flambeau sees here: ok is fine, -- is optional and missing, "
        "!! is broken.",
    )
    parser.parse_args(arguments)
    print(f"flambeau {__version__}")
    worst = 0
    for check in CHECKS:
        for finding in examined(check):
            print(finding, flush=True)
            worst |= finding.state == "broken"
    return int(worst)


def examined(check: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    """The findings of a check; an exception in it is one more, broken."""
    topic = check.__name__.strip("_").replace("_", " ")
    try:
        yield from check()
    except Exception as error:
        yield Finding(topic, f"{type(error).__name__}: {error}", "broken", "please report this")


def python() -> Iterator[Finding]:
    seen = f"{platform.python_implementation()} {platform.python_version()}, {platform.platform()}"
    if sys.version_info >= (3, 11) and platform.python_implementation() == "CPython":
        yield Finding("python", seen)
    else:
        yield Finding("python", seen, "broken", "use CPython 3.11, 3.12 or 3.13")


def packages() -> Iterator[Finding]:
    found = {name: _version(name) for name in _REQUIRED}
    absent = [name for name, version in found.items() if version is None]
    if absent:
        seen = f"not installed: {', '.join(absent)}"
        yield Finding("packages", seen, "broken", "pip install flambeau")
    else:
        yield Finding("packages", ", ".join(f"{name} {version}" for name, version in found.items()))


def extras() -> Iterator[Finding]:
    for name, consequence in _OPTIONAL.items():
        version = _version(name)
        if version is None:
            yield Finding(name, "not installed", "missing", consequence)
        else:
            yield Finding(name, version)


def processor() -> Iterator[Finding]:
    from flambeau.codegen import target

    host = target.host()
    units = ["fused multiply-add"] * host.fused_multiply_add + ["bf16 dot"] * host.bfloat16_dot
    caches = [host.level1_bytes, host.level2_bytes, host.level3_bytes]
    sizes = " / ".join(f"{size / 2**20:.3g}" for size in caches)
    words = [f"{host.architecture} {host.cpu}", f"{host.vector_bits}-bit vectors", *units]
    yield Finding("cpu", ", ".join([*words, f"caches {sizes} MiB"]))


def threads() -> Iterator[Finding]:
    from flambeau.runtime import pool

    free, used = pool.available_cpus(), pool.get_num_threads()
    seen = f"{used} used, {free} CPUs available to this process, {os.cpu_count()} in the machine"
    if used < free:
        advice = "FLAMBEAU_NUM_THREADS or OMP_NUM_THREADS asks for fewer"
        yield Finding("threads", seen, "ok", advice)
    else:
        yield Finding("threads", seen)


def native_code() -> Iterator[Finding]:
    """Compile the thread pool and run it."""
    from flambeau.runtime import pool

    try:
        pool.library()
    except Exception as error:
        advice = "check that llvmlite is whole: pip install --force-reinstall llvmlite"
        yield Finding("native code", f"{type(error).__name__}: {error}", "broken", advice)
        return
    yield Finding("native code", "compiles and runs")


def matrix_library() -> Iterator[Finding]:
    import numpy as np

    built = np.show_config(mode="dicts")["Build Dependencies"]["blas"]  # type: ignore[index,call-overload]
    seen = f"NumPy's {built.get('name')} {built.get('version')}"
    forced = os.environ.get("OPENBLAS_CORETYPE")
    advice = f"OPENBLAS_CORETYPE={forced} may slow matrix products" if forced else ""
    yield Finding("blas", seen, "ok", advice)


def cache() -> Iterator[Finding]:
    from flambeau.runtime import object_cache

    folder = object_cache.directory()
    if not folder:
        yield Finding("cache", "off (FLAMBEAU_CACHE)", "missing", "every process compiles anew")
        return
    place = Path(folder)
    files = [file for file in place.rglob("*") if file.is_file()]
    size = sum(file.stat().st_size for file in files) / 2**20
    seen = f"{folder}: {len(files)} files, {size:.1f} MiB"
    if not os.access(_nearest_existing(place), os.W_OK):
        advice = "not writable; set FLAMBEAU_CACHE to a folder that is"
        yield Finding("cache", seen, "missing", advice)
    elif object_cache.prepare():
        yield Finding("cache", seen)
    elif place.is_dir():
        advice = f"compiled code is kept only where no other user gets at it; chmod 700 {folder}"
        yield Finding("cache", seen, "missing", advice)
    else:
        advice = "not a folder, and none can be made; set FLAMBEAU_CACHE to another place"
        yield Finding("cache", seen, "missing", advice)


def frame_hook() -> Iterator[Finding]:
    from flambeau.capture import frame_hook as hook

    if hook.available():
        yield Finding("capture", "compile() follows calls through CPython's frame evaluation hook")
    else:
        seen = "this interpreter's frames are not of a known layout"
        advice = "compile() works on the function itself and on what it calls directly"
        yield Finding("capture", seen, "missing", advice)


def gpu() -> Iterator[Finding]:
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        yield Finding("gpu", "no NVIDIA driver (libcuda)", "missing", "computing on the CPU")
        return
    version, count = ctypes.c_int(), ctypes.c_int()
    status = driver.cuInit(0)
    if status or driver.cuDeviceGetCount(ctypes.byref(count)) or not count.value:
        advice = "check that nvidia-smi sees a GPU; computing on the CPU"
        seen = f"driver without a usable GPU (cuInit gave {status})"
        yield Finding("gpu", seen, "missing", advice)
        return
    driver.cuDriverGetVersion(ctypes.byref(version))
    major, minor = divmod(version.value, 1000)
    names = [_gpu_name(driver, index) for index in range(count.value)]
    yield Finding("gpu", f"{', '.join(names)}; driver for CUDA {major}.{minor // 10}")


def _gpu_name(driver: ctypes.CDLL, index: int) -> str:
    device, name = ctypes.c_int(), ctypes.create_string_buffer(100)
    driver.cuDeviceGet(ctypes.byref(device), index)
    driver.cuDeviceGetName(name, len(name), device)
    return name.value.decode(errors="replace")


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _nearest_existing(place: Path) -> Path:
    while not place.exists():
        place = place.parent
    return place


CHECKS: list[Callable[[], Iterator[Finding]]] = [
    python,
    packages,
    extras,
    processor,
    threads,
    native_code,
    matrix_library,
    cache,
    frame_hook,
    gpu,
]
