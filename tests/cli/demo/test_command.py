import functools
import os
import re
import signal
import sys

import pytest

from flambeau.cli.demo import command, digits, training


@pytest.fixture
def demo(blots, monkeypatch, tmp_path):
    """Runs the command on the blots, in a folder of its own; gives its exit code."""
    settings = functools.partial(training.Settings, held_out=60)
    monkeypatch.setattr(training, "Settings", settings)
    monkeypatch.setattr(digits, "digits", lambda: blots)
    return lambda *words: command.main([*words, "--out", str(tmp_path / "out")])


def test_a_run_leaves_a_checkpoint_and_a_picture(demo, tmp_path, capsys):
    image = pytest.importorskip("PIL.Image")
    assert demo("--epochs", "1") == 0
    said = capsys.readouterr().out
    assert "of 60 digits it has never seen" in said
    with image.open(tmp_path / "out" / "digits.png") as picture:
        assert picture.size == (1400, 700)
    assert (tmp_path / "out" / "checkpoint.pt").stat().st_size > 100_000


def test_ctrl_c_saves_and_says_how_to_resume(demo, tmp_path, capsys, monkeypatch):
    advance = training.Training.advance

    def interrupted(self):
        if self.step == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return advance(self)

    monkeypatch.setattr(training.Training, "advance", interrupted)
    handler = signal.getsignal(signal.SIGINT)
    assert demo("--epochs", "2") == 130
    assert "stopped after step 3" in capsys.readouterr().out
    assert signal.getsignal(signal.SIGINT) is handler
    monkeypatch.setattr(training.Training, "advance", advance)
    assert demo("--resume") == 0


def test_where_no_terminal_shows_the_bar_lines_tell(demo, capsys):
    assert demo("--epochs", "1") == 0
    said = capsys.readouterr()
    assert re.search(r"^step \d+/\d+, loss=\S+, accuracy=\S+%, images/s=\S+$", said.out, re.M)
    assert said.err == ""


def test_80_columns_show_all_figures(blots):
    from tqdm import tqdm

    run = training.Training(*blots, training.Settings(held_out=60))
    run.losses, run.accuracies = [10.0], [(1, 1.0)]
    figures = command._figures(run, [(99_999, 1.0)])
    postfix = ", ".join(f"{name}={value}" for name, value in figures.items())
    line = tqdm.format_meter(
        945, 945, 599.0, ncols=80, bar_format=command._BAR, postfix=postfix, initial=900
    )
    assert line.endswith("images/s=99,999")
    assert len(line) <= 80


@pytest.mark.skipif(os.name == "nt", reason="no pseudo-terminals")
def test_a_terminal_needs_a_width_to_show_the_bar():
    import fcntl
    import struct
    import termios

    ours, theirs = os.openpty()
    with os.fdopen(ours, "rb"), os.fdopen(theirs, "w") as terminal:
        assert not command._has_room(terminal)
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 25, 80, 0, 0))
        assert command._has_room(terminal)


@pytest.mark.parametrize(
    "script, on_path, typed",
    [
        ("/x/bin/flambeau", "/x/bin/flambeau", "flambeau demo"),
        (".venv/bin/flambeau", None, ".venv/bin/flambeau demo"),
        ("/x/flambeau/__main__.py", None, "python -m flambeau demo"),
    ],
)
def test_the_way_to_go_on_can_be_pasted(demo, capsys, monkeypatch, script, on_path, typed):
    monkeypatch.setattr(sys, "argv", [script])
    monkeypatch.setattr(command.shutil, "which", lambda name: on_path)
    monkeypatch.setattr(command, "_train", lambda *_: False)
    assert demo() == 130
    assert f"go on with: {typed} --resume --out " in capsys.readouterr().out


@pytest.mark.parametrize("count", ["0", "-1", "many"])
def test_epochs_are_counted_from_one(demo, capsys, count):
    with pytest.raises(SystemExit):
        demo("--epochs", count)
    assert f"--epochs: must be 1 or more; got '{count}'" in capsys.readouterr().err


def test_a_folder_that_cannot_be_made_is_named(capsys, tmp_path):
    (tmp_path / "file").write_text("")
    assert command.main(["--out", str(tmp_path / "file")]) == 1
    assert f"got '{tmp_path / 'file'}' (File exists)" in capsys.readouterr().err


def test_resume_without_a_checkpoint_says_so(demo, capsys):
    assert demo("--resume") == 1
    assert "no such file" in capsys.readouterr().err
