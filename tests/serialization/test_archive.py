"""The zip container: alignment, checksums, damage."""

import io
import os
import struct
import zipfile

import numpy as np
import pytest

import flambeau as torch
from flambeau.serialization.archive import ALIGNMENT, ArchiveReader, ArchiveWriter


def checkpoint(value=None):
    file = io.BytesIO()
    torch.save({"x": torch.arange(100.0), "y": torch.ones(7)} if value is None else value, file)
    return file.getvalue()


def written(records, name="archive"):
    file = io.BytesIO()
    archive = ArchiveWriter(file, name)
    for record, data in records.items():
        archive.write(record, data)
    archive.close()
    file.seek(0)
    return file


def test_storages_are_aligned_and_stored():
    sizes = [0, 1, 63, 64, 65, 1000]
    records = {"data.pkl": b"abc"} | {f"data/{n}": np.arange(n, dtype=np.uint8) for n in sizes}
    archive = ArchiveReader(written(records, "some name"))
    for record, data in records.items():
        assert archive.offset(record) % ALIGNMENT == 0
        assert archive.read(record) == bytes(data)
    assert {i.compress_type for i in archive.records.values()} == {zipfile.ZIP_STORED}


def test_large_records_keep_the_alignment(monkeypatch):
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 100)
    data = np.arange(200, dtype=np.uint8)
    archive = ArchiveReader(written({"data.pkl": b"abc", "data/0": data, "data/1": data}))
    for record in ("data/0", "data/1"):
        assert archive.offset(record) % ALIGNMENT == 0
        assert archive.read(record) == bytes(data)


def test_the_records_are_those_of_pytorch():
    with zipfile.ZipFile(io.BytesIO(checkpoint())) as archive:
        assert archive.namelist() == [
            "archive/data.pkl", "archive/.format_version", "archive/.storage_alignment",
            "archive/byteorder", "archive/data/0", "archive/data/1", "archive/version"]
        assert archive.testzip() is None


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.99])
def test_truncated_files_are_refused(share, tmp_path):
    data = checkpoint()
    path = tmp_path / "cut.pt"
    path.write_bytes(data[: int(len(data) * share)])
    with pytest.raises((RuntimeError, EOFError), match=r"load: .* damaged"):
        torch.load(path)


def test_every_changed_byte_of_a_storage_is_noticed():
    data = checkpoint()
    start = data.index(np.arange(100, dtype=np.float32).tobytes())
    for position in (start, start + 200, start + 399):
        changed = bytearray(data)
        changed[position] ^= 0x40
        with pytest.raises(RuntimeError, match="checksum"):
            torch.load(io.BytesIO(changed))


def test_changed_bytes_anywhere_never_crash():
    data = checkpoint({"x": torch.arange(4.0)})
    random = np.random.RandomState(0)
    for _ in range(1000):
        changed = bytearray(data)
        for position in random.randint(0, len(data), 3):
            changed[position] = random.randint(256)
        try:
            got = torch.load(io.BytesIO(changed))
        except (RuntimeError, EOFError, NotImplementedError):
            continue
        assert got["x"].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("data", [b"hello", b"PK\x03\x04aaaa", b"\x80\x02}q\x00.", b"\x00" * 100,
                                  b"\x80\x02", b"<html>404</html>"])
def test_what_is_no_checkpoint_is_refused(data):
    with pytest.raises(RuntimeError, match="load:"):
        torch.load(io.BytesIO(data))


def repacked(change):
    """The checkpoint with `change(name, data)` applied to each record; None leaves it out."""
    file = io.BytesIO()
    with (zipfile.ZipFile(io.BytesIO(checkpoint())) as old, zipfile.ZipFile(file, "w") as new):
        for name in old.namelist():
            data = change(name, old.read(name))
            if data is not None:
                new.writestr(name, data)
    file.seek(0)
    return file


@pytest.mark.parametrize(("change", "text"), [
    (lambda name, data: None if name.endswith("data/1") else data, "must be in the file"),
    (lambda name, data: None if name.endswith("pkl") else data, "data.pkl"),
    (lambda name, data: data[:-1] if name.endswith("data/1") else data, "bytes that its elements"),
    (lambda name, data: data + b"1234" if name.endswith("data/1") else data, "bytes that its"),
    (lambda name, data: b"middle" if name.endswith("order") else data, "byte order"),
])
def test_records_that_do_not_fit_are_named(change, text):
    with pytest.raises(RuntimeError, match=text):
        torch.load(repacked(change))


def test_other_byte_order_is_turned():
    def swap(name, data):
        if "/data/" in name:
            return np.frombuffer(data, "<f4").astype(">f4").tobytes()
        return b"big" if name.endswith("byteorder") else data

    assert torch.load(repacked(swap))["x"].tolist() == list(range(100))


def test_compressed_records_are_refused():
    """A small file cannot claim a large amount of memory."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as bomb:
        bomb.writestr("archive/data.pkl", bytes(1 << 20))
    file.seek(0)
    with pytest.raises(RuntimeError, match="without compression"):
        torch.load(file)


def test_overlapping_records_are_refused():
    """Many records over the same bytes would be a bomb as well."""
    data = checkpoint(torch.zeros(100_000))
    central = struct.unpack("<I", data[-6:-2])[0]
    directory, end = data[central:-22], data[-22:]
    entry_start = directory.index(b"archive/data/0") - 46
    length = 46 + sum(struct.unpack("<HHH", directory[entry_start + 28 : entry_start + 34]))
    entry = directory[entry_start : entry_start + length]
    extra = b"".join(entry.replace(b"data/0", b"data/%c" % c) for c in b"123456789")
    directory += extra
    count = struct.unpack("<H", end[10:12])[0] + 9
    end = end[:8] + struct.pack("<HHI", count, count, len(directory)) + end[16:]
    with pytest.raises(RuntimeError, match="fit into the file"):
        torch.load(io.BytesIO(data[:central] + directory + end))


def test_a_record_twice_is_refused():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made:
        made.writestr("archive/data.pkl", b"\x80\x02N.")
        with pytest.warns(UserWarning, match="Duplicate"):
            made.writestr("archive/data.pkl", b"\x80\x02K\x01.")
    file.seek(0)
    with pytest.raises(RuntimeError, match="only once"):
        torch.load(file)


def test_torchscript_archives_are_named():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made:
        made.writestr("m/data.pkl", b"\x80\x02N.")
        made.writestr("m/constants.pkl", b"\x80\x02N.")
    file.seek(0)
    with pytest.raises(RuntimeError, match=r"jit\.load"):
        torch.load(file)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_a_full_disk_is_an_error():
    with pytest.raises(OSError, match="No space left"):
        torch.save(torch.zeros(1_000_000), "/dev/full")
