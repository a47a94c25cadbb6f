"""The overview, and how commands end that somebody cuts short."""

import os
import signal
import subprocess
import sys

import pytest

from flambeau.cli import main as module


def test_the_overview_names_every_command(capsys):
    assert module.main([]) == 2
    said = capsys.readouterr().out
    assert all(f"  {name} " in said for name in ("run", "demo", "bench", "doctor"))


def test_an_unknown_command_is_refused(capsys):
    with pytest.raises(SystemExit):
        module.main(["train"])
    assert "invalid choice: 'train'" in capsys.readouterr().err


def test_ctrl_c_ends_without_a_traceback(monkeypatch):
    monkeypatch.setattr(module, "_run", lambda *_: os.kill(os.getpid(), signal.SIGINT))
    assert module.main(["demo"]) == 130
    with pytest.raises(KeyboardInterrupt):
        module.main(["run", "script.py"])


def test_a_reader_that_goes_away_ends_without_a_traceback():
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "flambeau", "doctor"]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")
