"""Files from strangers: nothing in them runs, errors are clear, time and memory are bounded."""

import io
import json
import pickle
import struct
import zipfile

import numpy as np
import pytest
import wengert as torch
from limits import limited
from mutations import damaged
from wengert.ir.parser import parse

GIGABYTE = 1 << 30
READING = """
import io, resource, sys
import wengert as torch
from limits import resident
from mutations import damaged
from test_hostile import GIGABYTE, GRAPH, a_file, parse
import pickle
"""


def a_file(**kwargs):
    file = io.BytesIO()
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    optimizer = torch.optim.Adam(net.parameters())
    net(torch.ones(5, 3)).sum().backward()
    optimizer.step()
    saved = {"net": net.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3,
             "mixed": [1, 2.5, "text", None, (True, b"bytes"), {4: 5}], **kwargs}  # fmt: skip
    torch.save(saved, file)
    return file.getvalue()


# --- .pt -----------------------------------------------------------------------------------------


def test_fuzzed_checkpoints_are_read_or_refused_in_bounds():
    limited(READING + """
start, refused = resident(), 0
for bad in damaged(a_file(), 4000):
    try:
        torch.load(io.BytesIO(bad))
    except (RuntimeError, pickle.UnpicklingError) as error:
        refused += 1
        assert len(str(error)) > 20, error
assert refused > 2000, refused
assert resident() - start < 200 << 20, resident() - start
""", memory=GIGABYTE, seconds=60)  # fmt: skip


def test_fuzzed_pickles_are_read_or_refused_in_bounds():
    """Damage inside the pickle, where the archive's own checksums do not see it."""
    limited(READING + """
import zipfile
whole = zipfile.ZipFile(io.BytesIO(a_file()))
name = next(n for n in whole.namelist() if n.endswith("data.pkl"))
refused = 0
for bad in damaged(whole.read(name), 1500, seed=1):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made:
        for other in whole.namelist():
            made.writestr(other, bad if other == name else whole.read(other))
    try:
        torch.load(io.BytesIO(file.getvalue()))
    except (RuntimeError, pickle.UnpicklingError) as error:
        refused += 1
        assert len(str(error)) > 20, error
assert refused > 750, refused
""", memory=GIGABYTE, seconds=60)  # fmt: skip


def archive(pickled, *, compression=zipfile.ZIP_STORED, **records):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as made:
        made.writestr("a/data.pkl", pickled)
        for name, data in records.items():
            made.writestr("a/data/" + name.removeprefix("_"), data)
    return io.BytesIO(file.getvalue())


def storage(kind="FloatStorage", key=b"0", count=2):
    return (b"(X\x07\x00\x00\x00storagectorch\n" + kind.encode() + b"\nX\x01\x00\x00\x00" + key
            + b"X\x03\x00\x00\x00cpuJ" + struct.pack("<i", count) + b"tQ")  # fmt: skip


def tensor(count, size, stride, offset=0):
    numbers = b"".join(b"J" + struct.pack("<i", n) for n in (offset, size, stride))
    place, extent, step = numbers[:5], numbers[5:10], numbers[10:]
    return (b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n(" + storage(count=count) + place + extent
            + b"\x85" + step + b"\x85\x89NtR.")  # fmt: skip


def test_declared_sizes_do_not_take_memory():
    """2^31 elements on a storage of eight bytes."""
    huge = 2**31 - 1
    for pickled in (tensor(huge, huge, 1), tensor(2, huge, 1), tensor(huge, 2, 1)):
        with pytest.raises((RuntimeError, pickle.UnpicklingError)):
            torch.load(archive(pickled, _0=bytes(8)))


def test_a_small_file_does_not_become_a_large_one():
    """A deflated record of 400 megabytes of zeros is half a megabyte on disk."""
    code = (
        READING
        + """
import zipfile
from test_hostile import archive, tensor
bomb = archive(tensor(2, 2, 1), compression=zipfile.ZIP_DEFLATED, _0=bytes(400 << 20))
start = resident()
try:
    torch.load(bomb)
except RuntimeError as error:
    assert "compressed" in str(error) or "bytes" in str(error), error
else:
    sys.exit("was read")
assert resident() - start < 300 << 20
"""
    )
    limited(code, memory=2 * GIGABYTE)


@pytest.mark.parametrize("pickled", [
    b"\x80\x02" + b"(" * 200_000 + b".",  # marks without an end
    b"\x80\x02" + b"]" * 200_000 + b"a" * 199_999 + b".",  # lists in lists
    b"\x80\x02" + b")" + b"\x85" * 200_000 + b".",  # tuples in tuples
    b"\x80\x02]q\x00" + b"h\x00h\x00\x86" * 50_000 + b".",  # one list many times
    b"\x80\x02" + b"\x8a\xff" + b"\x7f" * 255 + b".",  # a long integer
    b"\x80\x02X\xff\xff\xff\x7fabc.",  # a text that would be 2 GB
    b"\x80\x02" + b"]q\x00h\x00a.",  # a list that holds itself
    b"\x80\x02r\xff\xff\xff\xffN.",  # a far place in the memo
], ids=range(8))  # fmt: skip
def test_odd_pickles_end(pickled):
    """Nested, endless and huge pickles: read or refused, and freed, without deep recursion."""
    try:
        found = torch.load(archive(pickled))
        assert found is None or isinstance(found, (list, tuple, int))
    except (RuntimeError, pickle.UnpicklingError) as error:
        assert str(error)


NAMES = ["../../../../tmp/wengert_escaped", "/tmp/wengert_escaped", "a/../../x", "a\\..\\x"]


@pytest.mark.parametrize("name", NAMES)
def test_records_are_not_files(name, tmp_path, monkeypatch):
    """Names of records are keys: no path is made of them, wherever they point."""
    monkeypatch.chdir(tmp_path)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made:
        made.writestr("a/data.pkl", b"\x80\x02N.")
        made.writestr(name, b"escaped")
        made.writestr(f"a/data/{name}", b"escaped")
    file.seek(0)
    assert torch.load(file) is None
    assert list(tmp_path.iterdir()) == []


CALLS = ["os.system", "builtins.exec", "builtins.eval", "subprocess.run", "wengert.load",
         "builtins.getattr", "numpy.load", "importlib.import_module", "wengert.compile.compile",
         "torch.serialization.load", "wengert.hub.load"]  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("protocol", [2, 4])
def test_nothing_is_called(name, protocol):
    module, _, function = name.rpartition(".")
    if protocol == 2:
        named = f"c{module}\n{function}\n".encode()
    else:
        named = b"".join(b"\x8c" + bytes([len(t)]) + t.encode() for t in (module, function))
        named += b"\x93"
    call = b"\x80" + bytes([protocol]) + named + b"X\x04\x00\x00\x00true\x85R."
    with pytest.raises(pickle.UnpicklingError, match="weights_only"):
        torch.load(archive(call))


# --- graphs as text ------------------------------------------------------------------------------

GRAPH = """graph @f(%0: f32[2,3] "x", %1: f32[3] "w") {
  %2: f32[2,3] = mul %0, %1 @a.py:3
  %3: f32[2] = sum %2 {dim=(1,), keepdim=False} @a.py:4
  %4: f32[2] = tanh %3
  return %4, %2
}
"""


def test_fuzzed_graphs_are_read_or_refused_in_bounds():
    limited(READING + """
from wengert.ir.verify import VerifyError, verify
refused = 0
for bad in damaged(GRAPH.encode(), 4000):
    try:
        graph = parse(bad.decode("latin-1"))
        verify(graph).print()
    except (ValueError, RuntimeError, TypeError, IndexError, VerifyError) as error:
        refused += 1
        assert len(str(error)) > 10, repr(error)
assert refused > 2000, refused
""", memory=GIGABYTE, seconds=60)  # fmt: skip


@pytest.mark.parametrize("text", [
    GRAPH.replace("tanh", "__import__('os').system"),
    GRAPH.replace("(1,)", "(__import__('os').system('true'),)"),
    GRAPH.replace("(1,)", "(" * 10_000 + ")" * 10_000),
    GRAPH.replace("[2,3]", "[" + "9" * 5000 + "]"),
    GRAPH.replace("%4: f32[2] = tanh %3", "%4: f32[2] = tanh %9"),
], ids=["name", "attribute", "depth", "number", "order"])  # fmt: skip
def test_text_is_not_code(text):
    with pytest.raises((ValueError, RuntimeError)) as caught:
        parse(text)
    assert "line" in str(caught.value) or "%" in str(caught.value)


# --- exported folders ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exported")
    function = torch.compile(lambda x: (x * 2).tanh())
    function(torch.ones(3))
    function.export(folder)
    return folder


def test_fuzzed_manifests_are_refused(exported):
    path = exported / "manifest.json"
    whole = path.read_bytes()
    try:
        for bad in damaged(whole, 300):
            path.write_bytes(bad)
            try:
                json.loads(bad)
                torch.load_exported(exported)
            except (RuntimeError, ValueError) as error:
                assert str(error)
    finally:
        path.write_bytes(whole)
    assert torch.allclose(torch.load_exported(exported)(torch.ones(3)), torch.tensor(2.0).tanh())


@pytest.mark.parametrize("change", [
    {"library": "../library.so"}, {"library": "/lib/libc.so.6"}, {"library": 3}, {"stages": []},
    {"version": 99},
])  # fmt: skip
def test_manifests_reach_nothing_outside(exported, change):
    path = exported / "manifest.json"
    whole = path.read_text()
    try:
        path.write_text(json.dumps({**json.loads(whole), **change}))
        with pytest.raises(RuntimeError, match=r"damaged|format"):
            torch.load_exported(exported)
        facts = json.loads(whole)
        facts["stages"]["forward"]["errors"] = [["exec", "raise SystemExit"]]
        path.write_text(json.dumps(facts))
        with pytest.raises(RuntimeError, match="damaged"):
            torch.load_exported(exported)
    finally:
        path.write_text(whole)


def test_weights_hold_no_objects(exported):
    path = exported / "weights.npz"
    whole = path.read_bytes()
    try:
        np.savez(path, input0=np.array([{"a": 1}], dtype=object))
        with pytest.raises(RuntimeError, match="damaged"):
            torch.load_exported(exported)
        for bad in damaged(whole, 100):
            path.write_bytes(bad)
            try:
                torch.load_exported(exported)
            except RuntimeError as error:
                assert "damaged" in str(error)
    finally:
        path.write_bytes(whole)


def test_fuzzed_arrays_are_read_or_refused(tmp_path, capsys):
    """`wengert run-ir --inputs`: errors are one line."""
    from wengert.cli import main

    graph, arrays = tmp_path / "g.ir", tmp_path / "x.npz"
    graph.write_text(GRAPH)
    np.savez(arrays, x=np.ones((2, 3), "f4"), w=np.ones(3, "f4"))
    whole = arrays.read_bytes()
    for bad in (whole, *damaged(whole, 60)):
        arrays.write_bytes(bad)
        if main(["run-ir", str(graph), "--inputs", str(arrays)]):
            assert capsys.readouterr().err.startswith("wengert: ")
