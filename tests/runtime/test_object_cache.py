"""The cache gives back what was written here, or nothing."""

from __future__ import annotations

import os

import pytest

from flambeau.runtime import object_cache


@pytest.fixture
def place(tmp_path, monkeypatch):
    where = tmp_path / "cache"
    monkeypatch.setenv("FLAMBEAU_CACHE", str(where))
    object_cache._key.cache_clear()
    yield where
    object_cache._key.cache_clear()


def test_round_trip(place):
    assert object_cache.read("a") is None
    object_cache.write("a", b"code")
    assert object_cache.read("a") == b"code"
    assert oct(place.stat().st_mode & 0o777) == "0o700"
    assert oct((place / "key").stat().st_mode & 0o777) == "0o600"
    assert sorted(os.listdir(place)) == ["a.o", "key"]


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "rename", "foreign"])
def test_damaged_and_foreign_files_are_ignored(place, damage):
    object_cache.write("a", b"some code")
    file = place / "a.o"
    content = file.read_bytes()
    changed = {
        "flip": content[:-1] + bytes([content[-1] ^ 1]),
        "cut": content[:-3],
        "empty": b"",
        "rename": content,
        "foreign": b"\x7fELF" * 20,
    }[damage]
    target = place / "b.o" if damage == "rename" else file
    target.write_bytes(changed)
    assert object_cache.read("b" if damage == "rename" else "a") is None


def test_another_key_invalidates_everything(place):
    object_cache.write("a", b"code")
    (place / "key").unlink()
    object_cache._key.cache_clear()
    assert object_cache.read("a") is None
    object_cache.write("a", b"code")
    assert object_cache.read("a") == b"code"


@pytest.mark.parametrize("mode", [0o755, 0o770])
def test_open_directory_is_not_trusted(place, mode):
    object_cache.write("a", b"code")
    place.chmod(mode)
    object_cache._key.cache_clear()
    assert object_cache.read("a") is None


def test_open_key_is_not_trusted(place):
    object_cache.write("a", b"code")
    (place / "key").chmod(0o644)
    object_cache._key.cache_clear()
    assert object_cache.read("a") is None


def test_directory_of_someone_else_is_not_trusted(place, monkeypatch):
    object_cache.write("a", b"code")
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    object_cache._key.cache_clear()
    assert object_cache.read("a") is None


def test_symbolic_link_is_not_followed(tmp_path, monkeypatch):
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir(mode=0o700)
    link.symlink_to(real)
    monkeypatch.setenv("FLAMBEAU_CACHE", str(link))
    object_cache._key.cache_clear()
    object_cache.write("a", b"code")
    assert os.listdir(real) == []


def test_full_disk_is_a_miss(place, monkeypatch):
    object_cache.write("a", b"code")

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(object_cache.os, "replace", full)
    object_cache.write("b", b"code")
    assert object_cache.read("b") is None
    assert sorted(os.listdir(place)) == ["a.o", "key"]


def test_unusable_place_is_a_miss(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FLAMBEAU_CACHE", str(tmp_path / "file" / "below"))
    object_cache._key.cache_clear()
    object_cache.write("a", b"code")
    assert object_cache.read("a") is None


def test_it_can_be_switched_off(monkeypatch):
    monkeypatch.setenv("FLAMBEAU_CACHE", "off")
    assert object_cache.directory() == ""
    object_cache.write("a", b"code")
    assert object_cache.read("a") is None


def test_sweep_removes_the_oldest(place):
    for i, name in enumerate("abcd"):
        object_cache.write(name, b"x" * 100)
        os.utime(place / f"{name}.o", (i, i))
    object_cache.sweep(str(place), 2 * (100 + 32))
    assert sorted(os.listdir(place)) == ["c.o", "d.o", "key"]


def test_many_writers(place, child):
    program = """
from flambeau.runtime import object_cache
for i in range(50):
    object_cache.write("shared", b"code" * 1000)
    got = object_cache.read("shared")
    assert got == b"code" * 1000, got
print("fine")
"""
    import threading

    results = []
    threads = [
        threading.Thread(target=lambda: results.append(child(program, FLAMBEAU_CACHE=str(place))))
        for _ in range(3)
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == ["fine"] * 3
