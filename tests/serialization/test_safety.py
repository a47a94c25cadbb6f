"""What a file may and may not do."""

import argparse
import io
import os
import pickle
import pickletools
import zipfile
from collections import OrderedDict

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.serialization.allowed import Allowed
from flambeau.serialization.machine import Machine


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 3)
        self.activation = nn.functional.relu

    def forward(self, x):
        return self.activation(self.layer(x))


class Settings:
    def __init__(self, width):
        self.width = width


def saved(value):
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return file


def archive(pickled, **storages):
    """A checkpoint with a pickle of our choice."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made:
        made.writestr("archive/data.pkl", pickled)
        for key, data in storages.items():
            made.writestr(f"archive/data/{key[1:]}", data)
        made.writestr("archive/version", b"3\n")
    file.seek(0)
    return file


class Call:
    """Pickles as a call of a function by name."""

    def __init__(self, module, name, *arguments):
        self.module, self.name, self.arguments = module, name, arguments

    def bytes(self):
        body = pickle.dumps(self.arguments, 2)[2:-1]
        return b"\x80\x02c" + f"{self.module}\n{self.name}\n".encode() + body + b"R."


@pytest.mark.parametrize(("module", "name"), [
    ("os", "system"), ("posix", "system"), ("builtins", "eval"), ("builtins", "exec"),
    ("builtins", "getattr"), ("subprocess", "Popen"), ("torch", "load"), ("torch", "save"),
    ("torch.serialization", "save"), ("flambeau", "load"), ("torch.hub", "load"),
    ("numpy", "load"), ("numpy.testing", "runstring"), ("pickle", "loads"), ("types", "CodeType"),
    ("torch.nn", "Linear"), ("__main__", "anything"), ("builtins", "__import__"),
])
@pytest.mark.parametrize("weights_only", [True, False])
def test_code_is_refused(module, name, weights_only):
    call = Call(module, name, "echo harm")
    with pytest.raises(pickle.UnpicklingError, match="load:"):
        torch.load(archive(call.bytes()), weights_only=weights_only)


def test_the_refusal_says_what_to_do():
    with pytest.raises(pickle.UnpicklingError) as caught:
        torch.load(saved(Settings(3)))
    text = str(caught.value)
    assert "Weights only load failed" in text
    assert f"add_safe_globals([{Settings.__module__}.Settings])" in text
    assert "safe_globals" in text


def test_classes_that_the_user_allows_are_loaded():
    with torch.serialization.safe_globals([Settings]):
        assert torch.load(saved(Settings(3))).width == 3
    with pytest.raises(pickle.UnpicklingError):
        torch.load(saved(Settings(3)))
    torch.serialization.add_safe_globals([(Settings, "elsewhere.Old")])
    try:
        assert torch.serialization.get_safe_globals() == [Settings]
        renamed = pickle.dumps(Settings(4), 2).replace(
            f"c{Settings.__module__}\nSettings\n".encode(), b"celsewhere\nOld\n")
        assert torch.load(archive(renamed)).width == 4
    finally:
        torch.serialization.clear_safe_globals()
    assert torch.serialization.get_safe_globals() == []


def test_namespaces_of_command_lines_are_plain_data():
    value = argparse.Namespace(lr=0.1, layers=[1, 2])
    assert torch.load(saved(value)) == value


def test_unsafe_globals_are_listed():
    found = torch.serialization.get_unsafe_globals_in_checkpoint(saved([Settings(1), Net()]))
    assert f"{Settings.__module__}.Settings" in found
    assert f"{Net.__module__}.Net" in found
    assert not any("rebuild" in name for name in found)
    four = io.BytesIO()
    torch.save([Settings(1), Settings(2)], four, pickle_protocol=4)
    four.seek(0)
    assert torch.serialization.get_unsafe_globals_in_checkpoint(four) == [
        f"{Settings.__module__}.Settings"]


def test_whole_modules_need_the_word():
    net = Net()
    with pytest.raises(pickle.UnpicklingError, match="weights_only=False"):
        torch.load(saved(net))
    got = torch.load(saved(net), weights_only=False)
    x = torch.ones(1, 2)
    assert got(x).tolist() == net(x).tolist()
    assert got.layer.weight is not net.layer.weight


def test_a_module_file_cannot_plant_functions():
    planted = pickle.dumps(OrderedDict(), 2)
    call = b"\x80\x02cos\nsystem\n."
    assert planted
    with pytest.raises(pickle.UnpicklingError):
        torch.load(archive(call), weights_only=False)
    # A function of ours may be kept as a value (an activation), and not be called by the file.
    assert torch.load(archive(b"\x80\x02ctorch.nn.functional\nrelu\n."), weights_only=False)
    with pytest.raises(pickle.UnpicklingError):
        torch.load(archive(Call("torch.nn.functional", "relu", 1).bytes()), weights_only=False)


@pytest.mark.parametrize("pickled", [
    pytest.param(Call("builtins", "bytearray", 10**13).bytes(), id="bytearray of a size"),
    pytest.param(Call("collections", "deque", range(10**13)).bytes(), id="deque of a range"),
    pytest.param(Call("builtins", "set", range(10**13)).bytes(), id="set of a range"),
    pytest.param(Call("collections", "OrderedDict", range(10**13)).bytes(), id="dict of a range"),
    pytest.param(Call("torch", "Size", range(10**13)).bytes(), id="size of a range"),
    pytest.param(b"\x80\x02r\xff\xff\xff\x7f.", id="put of nothing"),
    pytest.param(b"\x80\x05\x8e" + b"\xff" * 7 + b"\x7f.", id="huge bytes"),
    pytest.param(b"\x80\x02T\xff\xff\xff\x7fabc.", id="huge string"),
    pytest.param(b"\x80\x02" + b")" + b"\x85" * 100_000 + b"K\x01}q\x00h\x00\x86.", id="deep"),
    pytest.param(b"\x80\x02}" + b")" + b"\x85" * 100_000 + b"K\x01s.", id="deep key"),
    pytest.param(b"\x80\x02})q\x00" + b"h\x00h\x00\x86q\x00" * 60 + b"K\x01s.", id="wide key"),
    pytest.param(b"\x80\x02]K\x01K\x02.", id="two objects"),
    pytest.param(b"\x80\x02(.", id="open mark"),
    pytest.param(b"\x80\x02.", id="nothing"),
    pytest.param(b"\x80\x63N.", id="newer protocol"),
    pytest.param(b"\x80\x02\x82\x01.", id="extension registry"),
    pytest.param(b"\x80\x02i__main__\nx\n.", id="old instance"),
    pytest.param(b"\x80\x02NNb.", id="state of None"),
    pytest.param(b"\x80\x02Nq\x00)R.", id="call of None"),
    pytest.param(b"\x80\x02N)\x81.", id="instance of None"),
    pytest.param(b"\x80\x02K\x01K\x02a.", id="append to a number"),
    pytest.param(b"\x80\x02K\x01K\x02K\x03s.", id="item of a number"),
    pytest.param(b"\x80\x02h\x05.", id="memo not set"),
    pytest.param(b"\x80\x02X\x02\x00\x00\x00\xff\xff.", id="bad text"),
    pytest.param(b"\x80\x02I1e5\n.", id="bad number"),
    pytest.param(b"\x80\x02(lcollections\nOrderedDict\n", id="cut"),
])
def test_hostile_pickles_are_refused_quickly(pickled):
    with pytest.raises(pickle.UnpicklingError, match="load:"):
        value = torch.load(archive(pickled))
        assert len(pickletools.optimize(pickle.dumps(len(value)))) == 0  # deep: loads, then ends


def test_deep_nesting_alone_is_harmless():
    pickled = b"\x80\x02" + b"]" * 100_000 + b"a" * 99_999 + b"."
    assert len(torch.load(archive(pickled))) == 1


def test_the_state_of_functions_and_classes_cannot_be_set():
    for module, name in [("torch._utils", "_rebuild_tensor_v2"), ("collections", "OrderedDict"),
                         ("torch.nn.parameter", "Parameter"), ("torch", "device")]:
        build = f"\x80\x02c{module}\n{name}\nN}}X\x01\x00\x00\x00xK\x01s\x86b.".encode("latin-1")
        with pytest.raises(pickle.UnpicklingError):
            torch.load(archive(build))


TENSOR = (b"ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nFloatStorage\n"
          b"X\x01\x00\x00\x000X\x03\x00\x00\x00cpu%stQ%s\x89ccollections\nOrderedDict\n)RtR.")


def number(n):
    return pickle.dumps(n, 2)[2:-1]


def tensor(offset, size, stride, count=4, stored=16):
    layout = b"".join(pickle.dumps(v, 2)[2:-1].replace(b"q\x00", b"") for v in
                      (offset, size, stride))
    return archive(b"\x80\x02" + TENSOR % (number(count), layout), _0=bytes(stored))


def test_a_tensor_made_by_hand_loads():
    assert torch.load(tensor(1, (2,), (2,))).tolist() == [0, 0]


@pytest.mark.parametrize("arguments", [
    dict(offset=0, size=(5,), stride=(1,)),
    dict(offset=3, size=(2,), stride=(1,)),
    dict(offset=-1, size=(2,), stride=(1,)),
    dict(offset=0, size=(-1,), stride=(1,)),
    dict(offset=3, size=(2,), stride=(-1,)),
    dict(offset=0, size=(2, 2), stride=(1,)),
    dict(offset=0, size=(2**40,), stride=(2**40,)),
    dict(offset=2**62, size=(2,), stride=(2**62,)),
    dict(offset=2**70, size=(1,), stride=(1,)),
    dict(offset=0, size=(2.0,), stride=(1,)),
    dict(offset="0", size=(2,), stride=(1,)),
    dict(offset=0, size=2, stride=(1,)),
    dict(offset=5, size=(0,), stride=(1,)),
    dict(offset=0, size=(1,) * 70, stride=(1,) * 70),
    dict(offset=0, size=(2,), stride=(1,), count=5),
    dict(offset=0, size=(2,), stride=(1,), count=-1),
    dict(offset=0, size=(2,), stride=(1,), count=2**62),
    dict(offset=0, size=(2,), stride=(1,), stored=8),
    dict(offset=0, size=(2,), stride=(1,), stored=0),
], ids=str)
def test_tensors_outside_of_their_storage_are_refused(arguments):
    with pytest.raises(RuntimeError, match="load:"):
        torch.load(tensor(**arguments))


def test_the_machine_reads_what_pickle_writes():
    value = [1, "a", 2.5, None, True, {"k": (1, 2, 3, 4)}, {1}, b"x", -(2**40)]
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        data = pickle.dumps(value, protocol)
        if protocol < 2:
            data = pickle.dumps(value[:6], protocol)
        got = Machine(io.BytesIO(data), len(data), Allowed(False), lambda r: None).load()
        assert got == (value if protocol >= 2 else value[:6])


def test_no_path_in_an_archive_is_ever_opened(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made:
        made.writestr("archive/data.pkl", pickle.dumps(1, 2))
        made.writestr("/etc/escaped", b"x")
        made.writestr("../escaped", b"x")
    file.seek(0)
    assert torch.load(file) == 1
    assert os.listdir(tmp_path) == []
