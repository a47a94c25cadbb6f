"""A file is replaced whole or not at all."""

import os
import stat

import pytest

import flambeau as torch
from flambeau.serialization.atomic import replacing


class Stop(BaseException):
    """Stands for Ctrl-C."""


@pytest.mark.parametrize("error", [Stop, KeyboardInterrupt, OSError, MemoryError])
def test_an_interrupted_write_leaves_the_old_file_and_no_other(tmp_path, error):
    path = tmp_path / "x"
    path.write_bytes(b"old")

    def interrupted():
        with replacing(path) as file:
            file.write(b"half")
            raise error

    with pytest.raises(error):
        interrupted()
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["x"]


def test_the_new_file_takes_the_mode_of_the_old_one(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"old")
    path.chmod(0o640)
    with replacing(path) as file:
        file.write(b"new")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_new_file_obeys_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        with replacing(tmp_path / "x"):
            pass
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == 0o640


def test_links_stay_links(tmp_path):
    (tmp_path / "folder").mkdir()
    target = tmp_path / "folder" / "target"
    target.write_bytes(b"old")
    link = tmp_path / "link"
    link.symlink_to(target)
    torch.save([1], link)
    assert link.is_symlink()
    assert torch.load(target) == [1]


def test_a_pipe_is_written_in_place(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with replacing(path) as file:
        file.write(b"through")
    assert os.read(reader, 100) == b"through"
    os.close(reader)
    assert stat.S_ISFIFO(path.stat().st_mode)


def test_relative_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.save([2], "here.pt")
    assert torch.load("here.pt") == [2]
