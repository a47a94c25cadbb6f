"""`flambeau demo`: trains with a live bar, then leaves a picture and a checkpoint.

Ctrl-C asks for a stop after the running step, so that the checkpoint never holds half a step; a
second Ctrl-C ends the process at once.
"""

import argparse
import signal
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

_BAR = "learning {percentage:3.0f}%|{bar:30}| step {n_fmt}/{total_fmt}, {remaining} left{postfix}"
_NO_PICTURE = "no picture: that needs Pillow; run `pip install 'flambeau[data]'`"


def main(arguments: list[str]) -> int:
    """0 when the training finished, 130 after Ctrl-C, 1 without usable data or checkpoint."""
    from flambeau.cli.demo.checkpoint import CheckpointUnusable
    from flambeau.cli.demo.digits import DigitsUnavailable

    options = _parser().parse_args(arguments)
    try:
        training = _started(options)
    except (DigitsUnavailable, CheckpointUnusable) as error:
        print(error, file=sys.stderr)
        return 1
    if not _train(training, options.out / "checkpoint.pt"):
        words = f"flambeau demo --resume --out {options.out}"
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
    parser.add_argument("--epochs", type=int, default=15, metavar="N")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    parser.add_argument("--out", type=Path, default=Path("flambeau-demo"), metavar="FOLDER")
    parser.add_argument(
        "--resume", action="store_true", help="go on from the checkpoint, with its settings"
    )
    return parser


def _started(options: argparse.Namespace):
    """A new training, or the one that the checkpoint holds."""
    from flambeau.cli.demo import checkpoint
    from flambeau.cli.demo.digits import digits
    from flambeau.cli.demo.training import Settings, Training

    if not options.resume:
        options.out.mkdir(parents=True, exist_ok=True)
        return Training(*digits(), Settings(epochs=options.epochs, seed=options.seed))
    state = checkpoint.load(options.out / "checkpoint.pt")
    training = Training(*digits(), Settings(**state["settings"]))
    training.load_state_dict(state)
    return training


def _train(training, file: Path) -> bool:
    """Train until the end, saving after every epoch; False where Ctrl-C came first."""
    from tqdm import tqdm

    from flambeau.cli.demo import checkpoint

    total, done = training.total_steps, training.step
    pace: deque[tuple[int, float]] = deque(maxlen=50)
    with tqdm(total=total, initial=done, bar_format=_BAR) as bar, _stop_request() as stop:
        while not training.finished and not stop:
            start = time.perf_counter()
            pace.append((training.advance(), time.perf_counter() - start))
            bar.set_postfix(_figures(training, pace), refresh=False)
            bar.update()
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
