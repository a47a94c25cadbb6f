import pytest

from flambeau.cli.demo import checkpoint


def test_no_file(tmp_path):
    with pytest.raises(checkpoint.CheckpointUnusable, match=r"no such file.*without --resume"):
        checkpoint.load(tmp_path / "none.pt")


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 cut short", b"\x80\x04}."])
def test_a_damaged_file_is_named_and_left_alone(tmp_path, content):
    file = tmp_path / "bad.pt"
    file.write_bytes(content)
    with pytest.raises(checkpoint.CheckpointUnusable, match=r"bad\.pt.*unreadable"):
        checkpoint.load(file)
    assert file.read_bytes() == content


def test_a_foreign_checkpoint_is_refused(tmp_path):
    checkpoint.save({"model": {}}, tmp_path / "other.pt")
    with pytest.raises(checkpoint.CheckpointUnusable, match="the demo did not write"):
        checkpoint.load(tmp_path / "other.pt")


def test_a_failed_write_keeps_the_former_file(tmp_path):
    file = tmp_path / "kept.pt"
    checkpoint.save({"step": 1}, file)
    before = file.read_bytes()
    with pytest.raises(Exception, match=r"pickle|lambda"):
        checkpoint.save({"step": lambda: 0}, file)
    assert file.read_bytes() == before
    assert [f.name for f in tmp_path.iterdir()] == ["kept.pt"]
