"""Object code is compiled once, believed only when whole, and never worth an exception."""

import concurrent.futures
import ctypes
import os
import subprocess
import sys
import threading

import pytest
from wengert.runtime import cache, jit, store


def text_of(number):
    return f"define i64 @answer() {{\n  ret i64 {number}\n}}\n"


def call(library):
    return ctypes.CFUNCTYPE(ctypes.c_int64)(library.address("answer"))()


@pytest.fixture
def directory(tmp_path, monkeypatch):
    path = tmp_path / "objects"
    monkeypatch.setenv("WENGERT_CACHE_DIR", str(path))
    monkeypatch.delenv("WENGERT_CACHE", raising=False)
    forget()
    yield path
    forget()


def forget():
    """As a new process would start: nothing remembered, a sweep due at the next write."""
    cache._memory.clear()
    cache._memory_bytes = 0
    store._puts_to_sweep = 0


def entry(directory):
    (path,) = directory.glob("*" + store.SUFFIX)
    return path


def test_compiled_once_per_process_and_once_per_directory(directory, compiles):
    for _ in range(3):
        assert call(cache.build(text_of(42), ["answer"])) == 42
    assert len(compiles) == 1
    forget()
    assert call(cache.build(text_of(42), ["answer"])) == 42
    assert len(compiles) == 1
    assert directory.stat().st_mode & 0o777 == 0o700


def test_a_second_process_does_not_compile(directory):
    code = f"""if True:
        from wengert.runtime import cache, jit
        import ctypes
        def refuse(*args, **kwargs): raise SystemExit("compiled")
        if {{warm}}: jit.compile_text = refuse
        library = cache.build({text_of(5)!r}, ["answer"])
        assert ctypes.CFUNCTYPE(ctypes.c_int64)(library.address("answer"))() == 5
    """
    for warm in (False, True):
        subprocess.run([sys.executable, "-c", code.replace("{warm}", str(warm))], check=True)


def test_options_and_text_make_the_key(directory):
    keys = {
        cache.key_of(text, options)
        for text in ("a", "b")
        for options in (jit.DEFAULT, jit.LIGHT, jit.Options(level=3))
    }
    assert len(keys) == 6


def test_the_host_makes_the_key(directory, monkeypatch):
    key = cache.key_of("a", jit.DEFAULT)
    here = jit.host()
    for field in ("llvmlite", "llvm", "triple", "cpu", "features"):
        changed = jit.Host(**{**here.__dict__, field: "another"})
        monkeypatch.setattr(jit, "host", lambda changed=changed: changed)
        assert cache.key_of("a", jit.DEFAULT) != key


def damage_truncated(path):
    path.write_bytes(path.read_bytes()[:-7])


def damage_empty(path):
    path.write_bytes(b"")


def damage_code(path):
    data = bytearray(path.read_bytes())
    data[-20] ^= 1
    path.write_bytes(data)


def damage_version(path):
    data = bytearray(path.read_bytes())
    data[8] ^= 0x40
    path.write_bytes(data)


def damage_foreign(path):
    path.write_bytes(b"\x7fELF" + bytes(500))


def damage_other_key(path):
    data = bytearray(path.read_bytes())
    data[12:44] = bytes(32)
    path.write_bytes(data)


@pytest.mark.parametrize(
    "damage",
    [damage_truncated, damage_empty, damage_code, damage_version, damage_foreign, damage_other_key],
)
def test_damaged_entries_are_rebuilt(directory, compiles, damage):
    cache.build(text_of(1), ["answer"])
    path = entry(directory)
    whole = path.read_bytes()
    damage(path)
    forget()
    assert call(cache.build(text_of(1), ["answer"])) == 1
    assert len(compiles) == 2
    assert path.read_bytes()[: store.HEADER.size] == whole[: store.HEADER.size]
    forget()
    cache.build(text_of(1), ["answer"])
    assert len(compiles) == 2


def test_an_entry_that_lies_about_being_code_is_rebuilt(directory, compiles):
    """A checksum can be right and the code still wrong: LLVM refuses it, and we compile."""
    key = cache.key_of(text_of(1), jit.DEFAULT)
    store.put(key, b"not an object at all")
    assert call(cache.build(text_of(1), ["answer"])) == 1
    assert len(compiles) == 1
    forget()
    assert call(cache.build(text_of(1), ["answer"])) == 1
    assert len(compiles) == 1


def test_disabled(directory, compiles, monkeypatch):
    monkeypatch.setenv("WENGERT_CACHE", "0")
    cache.build(text_of(1), ["answer"])
    forget()
    cache.build(text_of(1), ["answer"])
    assert len(compiles) == 2
    assert not directory.exists()
    assert store.info().reason == "disabled by WENGERT_CACHE"


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_a_directory_others_can_write_is_refused(directory, compiles, mode):
    directory.mkdir()
    directory.chmod(mode)
    for _ in range(2):
        assert call(cache.build(text_of(1), ["answer"])) == 1
        forget()
    assert len(compiles) == 2
    assert list(directory.iterdir()) == []
    assert "writable by others" in store.info().reason


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="needs users")
def test_a_directory_of_another_user_is_refused(directory, compiles, monkeypatch):
    cache.build(text_of(1), ["answer"])
    forget()
    monkeypatch.setattr(os, "getuid", lambda: directory.stat().st_uid + 1)
    assert call(cache.build(text_of(1), ["answer"])) == 1
    assert len(compiles) == 2
    assert "another user" in store.info().reason


def test_a_disk_that_refuses_only_loses_the_cache(directory, compiles, monkeypatch):
    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert call(cache.build(text_of(1), ["answer"])) == 1
    assert list(directory.iterdir()) == []


def test_a_directory_that_cannot_be_made_only_loses_the_cache(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("WENGERT_CACHE_DIR", str(tmp_path / "file" / "objects"))
    forget()
    assert call(cache.build(text_of(1), ["answer"])) == 1
    assert not store.info().enabled
    forget()


def test_the_least_recently_used_go_first(directory, monkeypatch):
    for number in range(6):
        cache.build(text_of(number), ["answer"])
        path = store._path(directory, cache.key_of(text_of(number), jit.DEFAULT))
        os.utime(path, (number + 1, number + 1))
    forget()
    cache.build(text_of(0), ["answer"])  # used again, so no longer the oldest
    size = store.info().bytes // 6
    monkeypatch.setenv("WENGERT_CACHE_SIZE", str(6 * size))
    forget()
    cache.build(text_of(6), ["answer"])
    kept = [
        number
        for number in range(7)
        if store._path(directory, cache.key_of(text_of(number), jit.DEFAULT)).exists()
    ]
    assert kept == [0, 4, 5, 6]


def test_memory_is_limited(directory, monkeypatch):
    size = len(cache.object_code(text_of(0)))
    monkeypatch.setattr(cache, "MEMORY_LIMIT", 3 * size)
    for number in range(10):
        cache.object_code(text_of(number))
    assert len(cache._memory) == 3
    assert cache._memory_bytes == sum(map(len, cache._memory.values()))


def test_number_of_entries_is_limited(directory, monkeypatch):
    """Each sweep reads the whole directory: many small entries would make all writes slow."""
    monkeypatch.setattr(store, "MOST_ENTRIES", 10)
    for number in range(10):
        cache.build(text_of(number), ["answer"])
    monkeypatch.setattr(store, "_puts_to_sweep", 0)
    cache.build(text_of(10), ["answer"])
    assert store.info().entries == 8
    assert store._puts_to_sweep == store.PUTS_PER_SWEEP
    monkeypatch.setattr(store, "_sweep", lambda directory, limit: 32_000)
    monkeypatch.setattr(store, "_puts_to_sweep", 0)
    cache.build(text_of(11), ["answer"])
    assert store._puts_to_sweep == 1000


def test_info_and_clear(directory):
    assert store.info().entries == 0
    for number in range(3):
        cache.build(text_of(number), ["answer"])
    (directory / "readme.txt").write_text("not an entry")
    found = store.info()
    assert (found.directory, found.entries, found.enabled) == (directory, 3, True)
    assert found.bytes > 3 * store.HEADER.size
    assert cache.clear() == 3
    assert store.info().entries == 0
    assert (directory / "readme.txt").exists()


def test_abandoned_halves_are_swept(directory):
    directory.mkdir(mode=0o700)
    old, new = directory / ".old.tmp", directory / ".new.tmp"
    for half in (old, new):
        half.write_bytes(b"half")
    os.utime(old, (1, 1))
    cache.build(text_of(1), ["answer"])
    assert not old.exists() and new.exists()


def test_threads_compile_the_same_text_once(directory, compiles):
    barrier = threading.Barrier(8)

    def work(_):
        barrier.wait()
        return call(cache.build(text_of(9), ["answer"]))

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(8))) == [9] * 8
    assert len(compiles) == 1


def test_many_processes_share_the_directory(directory):
    code = f"""if True:
        from wengert.runtime import cache
        import ctypes
        for number in range(12):
            text = {text_of(0)!r}.replace("i64 0", f"i64 {{number}}")
            library = cache.build(text, ["answer"])
            assert ctypes.CFUNCTYPE(ctypes.c_int64)(library.address("answer"))() == number
    """
    running = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(4)]
    assert [process.wait() for process in running] == [0] * 4
    assert store.info().entries == 12 + 1  # the other: what LLVM says of the machine
    assert not list(directory.glob(".*.tmp"))


def test_the_default_place_follows_xdg(monkeypatch, tmp_path):
    monkeypatch.delenv("WENGERT_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert store._chosen_directory() == tmp_path / "wengert"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert store._chosen_directory() == tmp_path / ".cache" / "wengert"
