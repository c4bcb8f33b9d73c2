"""These tests leave the user's own cache alone."""

import pytest
from native_cases import NAMES, TEXT
from wengert.runtime import cache, fastcall
from wengert.runtime.fastcall import make


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory):
    patch = pytest.MonkeyPatch()
    patch.setenv("WENGERT_CACHE_DIR", str(tmp_path_factory.mktemp("cache") / "objects"))
    yield
    patch.undo()


@pytest.fixture(scope="module")
def library():
    return cache.build(TEXT, NAMES)


@pytest.fixture(params=["native", "stand-in"])
def build(request, library, monkeypatch):
    """`make` for an entry of the text, both ways."""
    monkeypatch.setenv("WENGERT_FASTCALL", "0" if request.param == "stand-in" else "1")
    if request.param == "stand-in":
        assert fastcall.reason_for_fallback()
    elif fastcall.reason_for_fallback():
        pytest.skip(fastcall.reason_for_fallback())

    def build(name, *args, **options):
        made = make(library.address(name), *args, name=name, keep=[library], **options)
        assert made.__name__ == name
        return made

    return build
