"""The format of PyTorch up to 1.5, made by hand; files made by PyTorch: tests/oracle."""

import io
import pickle
import struct

import pytest

import flambeau as torch

MAGIC, PROTOCOL = 0x1950A86A20F9469CFC6C, 1001
TENSOR = (b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\n"
          b"FloatStorage\nX\x01\x00\x00\x007X\x03\x00\x00\x00cpuK\x03NtQK\x00K\x03\x85K\x01\x85\x89"
          b"ccollections\nOrderedDict\n)RtR.")


def old_file(magic=MAGIC, protocol=PROTOCOL, little=True, body=TENSOR, keys=("7",), count=3,
             data=None):
    order = "<" if little else ">"
    file = b"".join(pickle.dumps(v, 2) for v in (magic, protocol, dict(little_endian=little)))
    file += body + pickle.dumps(list(keys), 2) + struct.pack(order + "q", count)
    return io.BytesIO(file + (struct.pack(order + "3f", 1, 2, 3) if data is None else data))


@pytest.mark.parametrize("little", [True, False])
def test_both_byte_orders(little):
    assert torch.load(old_file(little=little)).tolist() == [1, 2, 3]


@pytest.mark.parametrize(("arguments", "text"), [
    (dict(magic=5), "magic number"),
    (dict(protocol=1), "protocol"),
    (dict(keys=("8",)), "those of the object"),
    (dict(keys=()), "those of the object"),
    (dict(count=4), "size that the object says"),
    (dict(data=b"1234"), "must not end early"),
    (dict(body=TENSOR.replace(b"K\x03N", b"J\xff\xff\xff\x7fN")), "fit into the file"),
    (dict(body=b"\x80\x02cos\nsystem\n."), "Unsupported global"),
])
def test_damage_is_named(arguments, text):
    with pytest.raises(RuntimeError if "global" not in text else pickle.UnpicklingError,
                       match=text):
        torch.load(old_file(**arguments))


def test_mapping_needs_the_zip_format(tmp_path):
    path = tmp_path / "old.pt"
    path.write_bytes(old_file().getvalue())
    with pytest.raises(RuntimeError, match="save it again"):
        torch.load(path, mmap=True)
