"""Killed while writing, no room, no permission, damage: old files stay, the cache heals."""

import errno
import os

import pytest
import wengert as torch
from limits import limited
from wengert.runtime import cache, jit, store

PLENTY = 1 << 20


def text_of(number):
    return f"define i64 @answer() {{\n  ret i64 {number}\n}}\n"


@pytest.fixture
def directory(tmp_path, monkeypatch):
    path = tmp_path / "objects"
    monkeypatch.setenv("WENGERT_CACHE_DIR", str(path))
    monkeypatch.delenv("WENGERT_CACHE", raising=False)
    cache._memory.clear()
    yield path
    cache._memory.clear()


# --- killed --------------------------------------------------------------------------------------


KILLING = """
import hashlib, os, signal, time
import wengert as torch
from wengert.runtime import store

def killed_often(work, times):
    \"\"\"Forks children that do `work(number)` for ever, and kills each in the middle.\"\"\"
    for turn in often(times):
        ready, done = os.pipe()
        child = os.fork()
        if child == 0:
            number = 0
            while True:
                work(number)
                number += 1
                os.write(done, b".")
        os.close(done)
        assert os.read(ready, 1), "the child ended by itself"
        time.sleep(0.002 * (turn % 7))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(ready)
"""


def test_killed_while_saving(tmp_path):
    """Whatever the moment, the path holds one whole file: the previous or the next."""
    path = tmp_path / "net.pt"
    limited(KILLING + f"""
path = {str(path)!r}
def work(number):
    torch.save({{"round": number, "w": torch.full((100_000,), float(number))}}, path)
for _ in range(20):
    killed_often(work, 2)
    found = torch.load(path)
    assert (found["w"] == found["round"]).all()
""")  # fmt: skip
    halves = [name for name in os.listdir(tmp_path) if name != "net.pt"]
    assert all(name.startswith(".net.pt.") for name in halves)


def test_killed_while_writing_the_cache(directory):
    limited(KILLING + """
def work(number):
    store.put(hashlib.sha256(b"%d" % (number % 5)).digest(), bytes(300_000))
killed_often(work, 40)
for name in os.listdir(os.environ["WENGERT_CACHE_DIR"]):
    if name.endswith(store.SUFFIX):
        data = open(os.path.join(os.environ["WENGERT_CACHE_DIR"], name), "rb").read()
        assert store._fault(data, bytes.fromhex(name.removesuffix(store.SUFFIX))) == "", name
""")  # fmt: skip
    assert list(directory.glob("*" + store.SUFFIX))


# --- no room, no permission ----------------------------------------------------------------------


def test_a_full_disk_while_saving(tmp_path):
    """Files may grow to 64 KB only: save raises, the old file is whole, no half is left."""
    path = tmp_path / "net.pt"
    torch.save({"w": torch.ones(10)}, path)
    limited(f"""
import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
import wengert as torch
try:
    torch.save({{"w": torch.ones({PLENTY})}}, {str(path)!r})
except OSError as error:
    print(error)
else:
    sys.exit("saved")
""", file_size=64 << 10, WENGERT_CACHE="0")  # fmt: skip
    assert torch.load(path)["w"].sum() == 10
    assert os.listdir(tmp_path) == ["net.pt"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_under_an_open_file():
    with pytest.raises(OSError) as caught, open("/dev/full", "wb", buffering=0) as file:
        torch.save({"w": torch.ones(PLENTY)}, file)
    assert caught.value.errno == errno.ENOSPC


def test_a_full_disk_under_the_cache(tmp_path):
    """Training goes on, and answers are right; there is just no cache."""
    done = limited("""
import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
import wengert as torch
from wengert.runtime import store
f = torch.compile(lambda x: (x.tanh() * 2).sum())
for _ in range(3):
    assert abs(f(torch.ones(5)).item() - 10 * torch.ones(()).tanh().item()) < 1e-5
print(store.info().entries)
""", file_size=100, WENGERT_CACHE_DIR=str(tmp_path / "objects"))  # fmt: skip
    assert done.stdout == "0\n" and not list((tmp_path / "objects").glob("*"))


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.ENOSPC, errno.EDQUOT])
def test_directories_that_cannot_be_written(directory, monkeypatch, number, tmp_path):
    """As on a read-only file system; permissions alone do not stop a superuser."""

    def refuse(*args, **kwargs):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("tempfile.mkstemp", refuse)
    library = cache.build(text_of(7), ["answer"])
    assert library.address("answer")
    assert list(directory.iterdir()) == []
    (tmp_path / "net.pt").write_bytes(b"old")
    with pytest.raises(OSError) as caught:
        torch.save({"w": torch.ones(2)}, tmp_path / "net.pt")
    assert caught.value.errno == number
    assert (tmp_path / "net.pt").read_bytes() == b"old"


# --- damage --------------------------------------------------------------------------------------


def older(data, key):
    fields = list(store.HEADER.unpack_from(data))
    fields[1] = store.FORMAT - 1
    return store.HEADER.pack(*fields) + data[store.HEADER.size :]


DAMAGES = {
    "is cut off": lambda data, key: data[:20],
    "bytes of code": lambda data, key: data[:-3],
    "is damaged": lambda data, key: data[:-9] + bytes([data[-9] ^ 4]) + data[-8:],
    "is no entry": lambda data, key: b"\x7fELF" + data[4:],
    "has format": older,
    "another key": lambda data, key: data[:12] + bytes(32) + data[44:],
}


@pytest.mark.parametrize("words", DAMAGES)
def test_damaged_entries_are_rebuilt_with_a_line_of_log(directory, words, monkeypatch, capfd):
    cache.build(text_of(2), ["answer"])  # the first of a process may also build what all use
    others = set(directory.glob("*" + store.SUFFIX))
    cache.build(text_of(3), ["answer"])
    (path,) = set(directory.glob("*" + store.SUFFIX)) - others
    whole = path.read_bytes()
    path.write_bytes(DAMAGES[words](whole, bytes.fromhex(path.stem)))
    cache._memory.clear()
    monkeypatch.setenv("WENGERT_LOG", "cache")
    library = cache.build(text_of(3), ["answer"])
    assert library.address("answer")
    assert path.read_bytes() == whole
    told = capfd.readouterr().err
    assert words in told and "will be replaced" in told


def test_objects_of_another_cpu_are_not_found(directory, monkeypatch):
    """A home directory shared by machines: each has entries of its own."""
    cache.build(text_of(5), ["answer"])
    here = jit.host()
    other = jit.Host(**{**here.__dict__, "cpu": "another", "features": "+another"})
    monkeypatch.setattr(jit, "host", lambda: other)
    cache._memory.clear()
    assert store.get(cache.key_of(text_of(5), jit.DEFAULT)) is None
    monkeypatch.setattr(jit, "host", lambda: here)
    assert store.get(cache.key_of(text_of(5), jit.DEFAULT)) is not None


def test_entries_of_other_owners_are_refused(directory, monkeypatch, capfd):
    cache.build(text_of(4), ["answer"])
    key = cache.key_of(text_of(4), jit.DEFAULT)
    assert store.get(key) is not None
    (path,) = directory.glob("*" + store.SUFFIX)
    monkeypatch.setenv("WENGERT_LOG", "cache")
    if os.getuid() == 0:
        os.chown(path, 12345, -1)
    else:
        monkeypatch.setattr(cache, "_strangers", lambda owner: "is owned by another user")
    assert store.get(key) is None
    assert "owned by another user" in capfd.readouterr().err
    assert directory.stat().st_mode & 0o777 == 0o700


def test_damaged_templates_are_made_again(tmp_path):
    """What is kept beside object code heals the same way."""
    code = (
        "import wengert as torch; print(torch.compile(lambda x: x.exp().sum(1))(torch.ones(8, 64)))"
    )
    results = []
    for round_ in range(2):
        folder = str(tmp_path / "c")
        results.append(limited(code, WENGERT_CACHE="1", WENGERT_CACHE_DIR=folder).stdout)
        for path in (tmp_path / "c").iterdir():
            data = bytearray(path.read_bytes())
            data[len(data) // 2] ^= 1 << round_
            path.write_bytes(data)
    assert len(set(results)) == 1
