"""The `flambeau` command: picks the subcommand, and loads only that one's code."""

import argparse
import importlib
import os
import sys
from collections.abc import Sequence

from flambeau.version import __version__

# name: (module below flambeau.cli, one line for the overview)
_COMMANDS = {
    "run": ("run", "run an unmodified PyTorch script"),
    "demo": ("demo.command", "train a small network on real handwritten digits"),
    "bench": ("bench.command", "measure what this machine gives"),
    "doctor": ("doctor", "show what flambeau sees here, and what to do about what is missing"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code (2: the command line makes no sense)."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    options = _parser().parse_args(words[:1])
    if options.command is None:
        _parser().print_help()
        return 2
    if options.command == "run":  # a script ends as it does under `python`
        return _run(options.command, words[1:])
    try:
        return _run(options.command, words[1:])
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader of `flambeau doctor | head` is gone, and exit would flush
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141


def _run(command: str, words: list[str]) -> int:
    module, _ = _COMMANDS[command]
    return importlib.import_module(f"flambeau.cli.{module}").main(words)


def _parser() -> argparse.ArgumentParser:
    overview = "\n".join(f"  {name:8} {line}" for name, (_, line) in _COMMANDS.items())
    parser = argparse.ArgumentParser(
        prog="flambeau",
        usage="flambeau COMMAND [options]",
        description=f"PyTorch's programming model, compiled through LLVM.\n\ncommands:\n{overview}",
        epilog="`flambeau COMMAND --help` tells more.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"flambeau {__version__}")
    parser.add_argument("command", nargs="?", choices=_COMMANDS, help=argparse.SUPPRESS)
    return parser
