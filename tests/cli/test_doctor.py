import ctypes

import pytest

from flambeau.cli import doctor


def test_every_check_finds_something_here(flambeau):
    done = flambeau("doctor")
    assert done.returncode == 0, done.stdout + done.stderr
    for topic in ("python", "packages", "cpu", "threads", "native code", "blas", "cache", "gpu"):
        assert topic in done.stdout
    assert "!!" not in done.stdout


def test_a_check_that_fails_is_a_finding():
    def broken_disk():
        yield doctor.Finding("disk", "there")
        raise OSError("it is on fire")

    found = list(doctor.examined(broken_disk))
    assert [f.state for f in found] == ["ok", "broken"]
    assert (found[1].topic, found[1].seen) == ("broken disk", "OSError: it is on fire")


def test_what_is_broken_gives_1(monkeypatch, capsys):
    monkeypatch.setattr(doctor, "_REQUIRED", ["numpy", "no_such_package"])
    monkeypatch.setattr(doctor, "CHECKS", [doctor.packages])
    assert doctor.main([]) == 1
    assert "!!  packages     not installed: no_such_package" in capsys.readouterr().out


@pytest.mark.parametrize("place, state", [("off", "missing"), ("", "missing")])
def test_a_cache_that_is_off(monkeypatch, place, state):
    monkeypatch.setenv("FLAMBEAU_CACHE", place)
    (finding,) = doctor.cache()
    assert finding.state == state


def test_a_cache_counts_what_it_holds(monkeypatch, tmp_path):
    (tmp_path / "a.o").write_bytes(bytes(2**20))
    monkeypatch.setenv("FLAMBEAU_CACHE", str(tmp_path))
    (finding,) = doctor.cache()
    assert finding.seen == f"{tmp_path}: 1 files, 1.0 MiB"


def test_a_cache_that_others_can_open(monkeypatch, tmp_path):
    place = tmp_path / "open"
    place.mkdir()
    place.chmod(0o755)
    monkeypatch.setenv("FLAMBEAU_CACHE", str(place))
    (finding,) = doctor.cache()
    assert (finding.state, finding.advice.endswith(f"chmod 700 {place}")) == ("missing", True)


def test_a_cache_that_cannot_be_made(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FLAMBEAU_CACHE", str(tmp_path / "file"))
    (finding,) = doctor.cache()
    assert (finding.state, finding.advice.split(",")[0]) == ("missing", "not a folder")


class FakeDriver:
    """libcuda with one card, or none."""

    def __init__(self, cards):
        self.cards = cards

    def cuInit(self, flags):
        return 0

    def cuDeviceGetCount(self, count):
        count._obj.value = self.cards
        return 0

    def cuDriverGetVersion(self, version):
        version._obj.value = 12080

    def cuDeviceGet(self, device, index):
        device._obj.value = index

    def cuDeviceGetName(self, name, size, device):
        name.value = b"Card %d" % device.value


def test_a_gpu_is_named(monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", lambda name: FakeDriver(2))
    (finding,) = doctor.gpu()
    assert str(finding) == "ok  gpu          Card 0, Card 1; driver for CUDA 12.8"


def test_a_driver_without_a_gpu_gives_advice(monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", lambda name: FakeDriver(0))
    (finding,) = doctor.gpu()
    assert finding.state == "missing"
    assert "nvidia-smi" in finding.advice
