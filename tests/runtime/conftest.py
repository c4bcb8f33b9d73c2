"""These tests leave the user's own cache alone."""

import pytest


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory):
    patch = pytest.MonkeyPatch()
    patch.setenv("WENGERT_CACHE_DIR", str(tmp_path_factory.mktemp("cache") / "objects"))
    yield
    patch.undo()
