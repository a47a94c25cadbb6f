"""The bench: every workload runs, and figures are put together rightly. No speed is asserted."""

import json

import pytest

from flambeau.cli.bench import command
from flambeau.cli.bench.workloads import WORKLOADS, Work


def test_a_table_and_a_file_of_figures(monkeypatch, tmp_path, capsys):
    answers = iter([2.0, 8.0, 3.0, 4.0])
    monkeypatch.setattr(command.importlib.util, "find_spec", lambda name: name)
    monkeypatch.setattr(command, "_in_a_process", lambda package, name: next(answers))
    file = tmp_path / "figures.json"
    assert command.main(["--only", "copy", "--json", str(file)]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line.split() == "copy 64 MiB flambeau 3.0 GB/s torch 8.0 GB/s 0.38 times as fast".split()
    assert json.loads(file.read_text()) == {
        "flambeau": {"copy 64 MiB": 3.0},
        "torch": {"copy 64 MiB": 8.0},
    }


def test_what_cannot_run_says_why(monkeypatch):
    def broken(torch):
        raise RuntimeError("no such thing")

    monkeypatch.setitem(WORKLOADS, "copy 64 MiB", broken)
    assert command.measured("flambeau", ["copy 64 MiB"]) == {
        "copy 64 MiB": "RuntimeError: no such thing"
    }


def test_a_name_that_fits_nothing_ends_with_2(capsys):
    assert command.main(["--only", "teapot"]) == 2
    assert "'teapot'" in capsys.readouterr().err


def test_figures_are_rates_or_seconds_of_one_unit():
    assert command.figure(Work("GB/s", 3.0, int), 2.0) == 1.5
    assert command.figure(Work("s", 1 / 100, int), 2.0) == 0.02


@pytest.mark.parametrize("name", [n for n in WORKLOADS if "MiB" not in n and "compiled" not in n])
def test_workloads_run(name):
    import flambeau

    WORKLOADS[name](flambeau).run()
