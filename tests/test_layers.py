"""Imports point down only, also inside functions; files hold one idea."""

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "flambeau"

# From the top. Names on one line are one layer: they may use each other.
LAYERS = [
    {"cli", "alias"},
    {"distributed"},
    {"compile", "compiler", "_dynamo"},
    {"aot"},
    {"capture"},
    {"nn", "optim", "data", "amp", "func", "distributions", "vision", "serialization", "utils"}
    | {"devices", "backends", "accelerator", "cpu", "cuda", "mps", "mtia", "xpu"}
    | {"jit", "library", "testing", "types", "storage", "overrides", "sparse", "futures", "fx"}
    | {"hub", "multiprocessing", "profiler", "export", "onnx", "package", "nested", "ao"}
    | {"quantization", "_C", "_logging"},
    {"functional", "linalg", "fft", "special", "masked", "signal"},
    {"autograd"},
    {"eager"},
    {"random"},
    {"tensor"},
    {"codegen"},
    {"schedule"},
    {"runtime"},
    {"graph"},
    {"ops"},
    {"loops"},
    {"ir"},
    {"core", "version"},
]
# The package itself and the modules that only give public names their place: they see every layer
# below the command line, and only the command line may import them.
ROOTS = {"__init__", "__main__"}
HEIGHT = {name: len(LAYERS) - at for at, layer in enumerate(LAYERS) for name in layer}
LONG = 600


def sources() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def layer_of(file: Path) -> str:
    """The first name below `flambeau`: a package, or a module of the root."""
    return file.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_modules(file: Path) -> Iterator[tuple[int, str]]:
    """(line, dotted module of flambeau) for every import in the file, wherever it stands."""
    package = ["flambeau", *file.relative_to(PACKAGE).parts[:-1]]
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) + 1 - node.level]) if node.level else ""
            module = ".".join(filter(None, [base, node.module]))
            if module == "flambeau":
                yield from ((node.lineno, f"flambeau.{alias.name}") for alias in node.names)
            else:
                yield node.lineno, module


def violations(file: Path) -> list[str]:
    """One line for every import that points up."""
    source = layer_of(file)
    if source in ROOTS:
        return []
    found = []
    for line, module in imported_modules(file):
        parts = module.split(".")
        if parts[0] != "flambeau":
            continue
        target = parts[1] if len(parts) > 1 else "flambeau"
        allowed = target == source or HEIGHT.get(target, len(LAYERS)) <= HEIGHT[source]
        if not allowed:
            found.append(f"{file.relative_to(PACKAGE.parent)}:{line} imports {module}")
    return found


def test_every_module_of_the_package_belongs_to_a_layer():
    unknown = {layer_of(file) for file in sources()} - set(HEIGHT) - ROOTS
    assert not unknown, f"give these a place in LAYERS: {sorted(unknown)}"


def test_imports_point_down():
    found = [line for file in sources() if layer_of(file) in HEIGHT for line in violations(file)]
    assert not found, "imports that point up:\n" + "\n".join(found)


def test_the_check_sees_imports_inside_functions_and_relative_ones(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "PACKAGE", tmp_path)
    file = tmp_path / "ops" / "sums.py"
    file.parent.mkdir()
    file.write_text(
        "from ..core import dtype\n"
        "from . import registry\n"
        "def f():\n"
        "    from ..tensor import Tensor\n"
        "    import flambeau.nn\n"
        "    from flambeau import functional\n"
    )
    assert [line.split()[-1] for line in violations(file)] == [
        "flambeau.tensor",
        "flambeau.nn",
        "flambeau.functional",
    ]


def test_file_lengths(capsys):
    """Past 600 lines look for the second idea (the report shows with -s); past 900 there is one."""
    lengths = {f.relative_to(PACKAGE.parent): f.read_text().count("\n") for f in sources()}
    long = sorted((n, f) for f, n in lengths.items() if n > LONG)
    with capsys.disabled():
        for lines, file in long:
            print(f"\n{file}: {lines} lines", end="")
    assert not [file for lines, file in long if lines > 900]
