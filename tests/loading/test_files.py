"""save and load: torch's files in both directions, aliasing, damaged and hostile files."""

import io
import os
import pickle
import random
import zipfile
from collections import OrderedDict
from pathlib import Path

import pytest
import wengert as torch
from wengert import nn
from wengert.serialization import add_safe_globals, clear_safe_globals, safe_globals

MADE_BY_TORCH = Path(__file__).resolve().parent.parent / "data" / "made_by_torch.pt"
DTYPES = [
    "float64",
    "float16",
    "bfloat16",
    "int64",
    "int32",
    "int16",
    "int8",
    "uint8",
    "bool",
    "complex64",
    "complex128",
    "uint16",
    "uint32",
]


def trip(obj, **kwargs):
    file = io.BytesIO()
    torch.save(obj, file)
    file.seek(0)
    return torch.load(file, **kwargs)


def test_reads_a_file_of_torch():
    found = torch.load(MADE_BY_TORCH)
    net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    assert repr(net.load_state_dict(found["model"])) == "<All keys matched successfully>"
    torch.manual_seed(0)
    assert torch.allclose(found["model"]["0.weight"], nn.Linear(2, 3).weight)
    assert found["model"]._metadata["1"] == {"version": 2}
    for name, value in found["dtypes"].items():
        parts = value.real if value.is_complex() else value
        assert value.dtype is getattr(torch, name) and parts.double().tolist() == [1, 1]
    first, second, turned = found["views"]
    first[2] = 99
    assert second[0] == 99 and turned.stride() == (1, 4)
    assert isinstance(found["parameter"], nn.Parameter)
    assert found["leaf"].requires_grad and found["size"] == torch.Size([1, 2])
    assert found["plain"] == [1, -5, 2**40, 2**70, 1.5, "é", None, True, b"ab", {1, 2}, 3 + 4j]
    optimizer = torch.optim.Adam(net.parameters())
    optimizer.load_state_dict(found["optimizer"])
    assert optimizer.state[net[0].weight]["step"].item() == 1


@pytest.mark.parametrize("name", DTYPES)
def test_every_dtype_comes_back(name):
    value = torch.ones(2, 3, dtype=getattr(torch, name))
    found = trip(value)
    assert found.dtype is value.dtype and torch.equal(found, value)


def test_layouts_and_sharing_come_back():
    base = torch.arange(12.0)
    a, b, c, d = trip((base[:3], base[2:9:2], base.view(3, 4).t(), torch.ones(1).expand(4)))
    a[2] = 100
    assert b[0] == 100 and c.stride() == (1, 4) and d.stride() == (0,)
    assert torch.equal(c, torch.cat([a, torch.arange(3.0, 12)]).view(3, 4).t())
    assert trip(torch.empty(0, 3)).shape == (0, 3) and trip(torch.tensor(7)).item() == 7
    with pytest.raises(RuntimeError, match="view the same data as different types"):
        trip((base, torch.from_numpy(base.numpy().view("int32"))))


def test_whole_models_need_weights_only_off():
    net = nn.Sequential(nn.Linear(2, 2), nn.LSTM(2, 2))
    with pytest.raises(pickle.UnpicklingError, match="weights_only"):
        trip(net)
    found = trip(net, weights_only=False)
    assert torch.equal(found[0].weight, net[0].weight) and repr(found) == repr(net)


class Config:
    def __init__(self):
        self.width = 3


def test_classes_may_be_allowed():
    with pytest.raises(pickle.UnpicklingError, match="add_safe_globals"):
        trip(Config())
    with safe_globals([Config]):
        assert trip(Config()).width == 3
    add_safe_globals([Config])
    assert trip(Config()).width == 3
    clear_safe_globals()


def archive(pickled, **storages):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made:
        made.writestr("a/data.pkl", pickled)
        for key, data in storages.items():
            made.writestr(f"a/data/{key[1:]}", data)
    file.seek(0)
    return file


class Command:
    def __reduce__(self):
        return os.system, ("echo hostile",)


STORAGE = (b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpu"
           b"K\x02tQ")  # fmt: skip
TENSOR = b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n(" + STORAGE


@pytest.mark.parametrize("file", [
    archive(pickle.dumps(Command(), 2)),
    archive(pickle.dumps(Command(), 4)),
    archive(b"\x80\x02cos\nsystem\n."),
    archive(b"\x80\x02ctorch\nfloat32\n}X\x04\x00\x00\x00nameX\x01\x00\x00\x00xsb."),
    archive(b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n}X\x01\x00\x00\x00aNsb."),
    archive(b"\x80\x02cbuiltins\nbytearray\nJ\xff\xff\xff\x7f\x85R."),
    archive(b"\x80\x02((((."),
    archive(b"\x80\x02h\x05."),
    archive(b""),
    archive(TENSOR + b"K\x00K\x09\x85K\x01\x85\x89NtR.", _0=b"\0" * 8),  # reaches too far
    archive(TENSOR + b"J\xff\xff\xff\xffK\x02\x85K\x01\x85\x89NtR.", _0=b"\0" * 8),  # before it
    archive(TENSOR + b"K\x00K\x02\x85K\x01\x85\x89NtR.", _0=b"\0" * 7),  # too short
    archive(TENSOR + b"K\x00K\x02\x85K\x01\x85\x89NtR."),  # missing
    io.BytesIO(b"no archive"),
    io.BytesIO(b"PK\x03\x04no archive either"),
])  # fmt: skip
def test_hostile_files_are_refused(file, capfd):
    file.seek(0)
    with pytest.raises((RuntimeError, pickle.UnpicklingError)):
        torch.load(file)
    assert "hostile" not in capfd.readouterr().out


def test_damaged_files_raise_clear_errors():
    file = io.BytesIO()
    torch.save(OrderedDict(a=torch.arange(10.0), b=[1, "x"]), file)
    good, draw = file.getvalue(), random.Random(0)
    for k in range(300):
        bad = bytearray(good)
        if k % 3:
            bad[draw.randrange(len(bad))] ^= 1 << draw.randrange(8)
        else:
            del bad[draw.randrange(1, len(bad)) :]
        try:
            torch.load(io.BytesIO(bytes(bad)))
        except (RuntimeError, pickle.UnpicklingError) as error:
            assert len(str(error)) > 20


def test_writing_to_a_path_is_all_or_nothing(tmp_path):
    path = tmp_path / "net.pt"
    torch.save({"a": torch.ones(2)}, path)
    before = path.read_bytes()
    with pytest.raises(Exception, match="pickle"):
        torch.save({"a": torch.ones(2), "b": lambda: None}, path)
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["net.pt"]
    with pytest.raises(RuntimeError, match="does not exist"):
        torch.save(1, tmp_path / "missing" / "net.pt")
    with pytest.raises(FileNotFoundError):
        torch.load(tmp_path / "other.pt")
