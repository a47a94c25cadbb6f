"""`flambeau demo`: trains with a live bar, then leaves a picture and a checkpoint.

Ctrl-C asks for a stop after the running step, so that the checkpoint never holds half a step; a
second Ctrl-C ends the process at once.
"""

import argparse
import os
import shlex
import shutil
import signal
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from flambeau.core.errors import FlambeauError

# Everything but the bar takes 70 columns, so that 80 show it all.
_BAR = "{percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt}, {remaining} left{postfix}"
_NO_PICTURE = "no picture: that needs Pillow; run `pip install 'flambeau[data]'`"


class FolderUnusable(FlambeauError, OSError):
    """There is nowhere to leave the picture and the checkpoint."""


def main(arguments: list[str]) -> int:
    """0 when the training finished, 130 after Ctrl-C, 1 without data, checkpoint or folder."""
    from flambeau.cli.demo.checkpoint import CheckpointUnusable
    from flambeau.cli.demo.digits import DigitsUnavailable

    options = _parser().parse_args(arguments)
    try:
        training = _started(options)
    except (DigitsUnavailable, CheckpointUnusable, FolderUnusable) as error:
        print(error, file=sys.stderr)
        return 1
    if not _train(training, options.out / "checkpoint.pt"):
        words = f"{_program()} demo --resume --out {shlex.quote(str(options.out))}"
        print(f"stopped after step {training.step}, saved; go on with: {words}")
        return 130
    _conclude(training, options.out)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="flambeau demo",
        description="Train a small convolutional network on 4,000 real handwritten digits and "
        "test it on 1,000 others.",
    )
    parser.add_argument(
        "--epochs", type=_count, default=15, metavar="N", help="passes over the digits (15)"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of all that is drawn (0)")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("flambeau-demo"),
        metavar="FOLDER",
        help="for the picture and the checkpoint (flambeau-demo)",
    )
    parser.add_argument(
        "--resume", action="store_true", help="go on from the checkpoint, with its settings"
    )
    return parser


def _count(word: str) -> int:
    if not word.isdecimal() or int(word) == 0:
        raise argparse.ArgumentTypeError(f"must be 1 or more; got {word!r}")
    return int(word)


def _program() -> str:
    """What the user types to get here: `make demo` takes a flambeau that is not on the PATH."""
    if Path(sys.argv[0]).name == "__main__.py":
        return "python -m flambeau"
    return "flambeau" if shutil.which("flambeau") else sys.argv[0]


def _started(options: argparse.Namespace):
    """A new training, or the one that the checkpoint holds."""
    from flambeau.cli.demo import checkpoint
    from flambeau.cli.demo.digits import digits
    from flambeau.cli.demo.training import Settings, Training

    if not options.resume:
        _make(options.out)
        return Training(*digits(), Settings(epochs=options.epochs, seed=options.seed))
    state = checkpoint.load(options.out / "checkpoint.pt")
    training = Training(*digits(), Settings(**state["settings"]))
    training.load_state_dict(state)
    return training


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        reason = "" if os.access(folder, os.W_OK) else "not writable"
    except OSError as error:
        reason = error.strerror or str(error)
    if reason:
        raise FolderUnusable(
            f"flambeau demo: --out must be a folder that can be written; got {str(folder)!r} "
            f"({reason}). Name another one."
        )


def _train(training, file: Path) -> bool:
    """Train until the end, saving after every epoch; False where Ctrl-C came first."""
    from tqdm import tqdm

    from flambeau.cli.demo import checkpoint

    total, done = training.total_steps, training.step
    pace: deque[tuple[int, float]] = deque(maxlen=50)
    live = _has_room(sys.stderr)
    bar = tqdm(total=total, initial=done, bar_format=_BAR, dynamic_ncols=True, disable=not live)
    with bar, _stop_request() as stop:
        while not training.finished and not stop:
            start = time.perf_counter()
            pace.append((training.advance(), time.perf_counter() - start))
            bar.set_postfix(_figures(training, pace), refresh=False)
            bar.update()
            if not live and training.step % training.test_interval == 0:
                print(_line(training, pace), flush=True)
            if training.step % training.steps_per_epoch == 0:
                checkpoint.save(training.state_dict(), file)
    checkpoint.save(training.state_dict(), file)
    return training.finished


def _figures(training, pace: Iterable[tuple[int, float]]) -> dict[str, str]:
    """Loss and images/s over the last 50 steps, accuracy on the held-out digits."""
    losses = training.losses[-50:]
    images, seconds = map(sum, zip(*pace))
    return {
        "loss": f"{sum(losses) / len(losses):.3f}",
        "accuracy": f"{training.accuracies[-1][1]:.1%}" if training.accuracies else "-",
        "images/s": f"{images / seconds:,.0f}",
    }


def _has_room(stream) -> bool:
    """Whether a bar can be seen there: tqdm writes blanks to a terminal of unknown width."""
    return stream.isatty() and os.get_terminal_size(stream.fileno()).columns > 0


def _line(training, pace: Iterable[tuple[int, float]]) -> str:
    """What a log shows where no terminal shows the bar."""
    figures = ", ".join(f"{name}={value}" for name, value in _figures(training, pace).items())
    return f"step {training.step}/{training.total_steps}, {figures}"


@contextmanager
def _stop_request() -> Iterator[list[int]]:
    """A list that Ctrl-C makes non-empty; the second Ctrl-C does what it always does."""
    asked: list[int] = []

    def ask(number: int, frame: FrameType | None) -> None:
        asked.append(number)
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, before)


def _conclude(training, folder: Path) -> None:
    accuracy = training.accuracies[-1][1]
    print(f"reads {accuracy:.1%} of {training.settings.held_out:,} digits it has never seen")
    print(f"checkpoint: {folder / 'checkpoint.pt'}")
    try:
        from flambeau.cli.demo.picture import draw
    except ModuleNotFoundError:
        print(_NO_PICTURE)
        return
    draw(training, folder / "digits.png")
    print(f"picture: {folder / 'digits.png'}")
