"""`torch.hub`: torch 2.13's answers, for folders at hand."""

import pytest
import wengert as torch

CONF = """
from neighbour import WIDTH

dependencies = ["os"]


def tiny(n=WIDTH, **options):
    "A tiny model."
    import wengert

    return wengert.nn.Linear(n, 1, **options)


def _hidden():
    pass


other = 3
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "neighbour.py").write_text("WIDTH = 2\n")
    (tmp_path / "hubconf.py").write_text(CONF)
    return tmp_path


def test_local_folders_give_models(folder):
    load = torch.hub.load
    assert load(str(folder), "tiny", source="local").in_features == 2
    assert load(folder, "tiny", 5, source="local", bias=False).bias is None
    for model in ("nope", "other"):
        with pytest.raises(RuntimeError, match=f"Cannot find callable {model} in hubconf"):
            load(str(folder), model, source="local")
    with pytest.raises(ValueError, match='Unknown source: "x"'):
        load(str(folder), "tiny", source="x")
    with pytest.raises(ValueError, match="model should be a string of function name"):
        load(str(folder), 3, source="local")
    with pytest.raises(FileNotFoundError):
        load(str(folder / "elsewhere"), "tiny", source="local")
    (folder / "hubconf.py").write_text('dependencies = ["no_such_package"]\ndef tiny(): pass\n')
    with pytest.raises(RuntimeError, match="Missing dependencies: no_such_package"):
        load(str(folder), "tiny", source="local")


def test_repositories_are_found_in_the_cache(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(torch.hub, "_directory", None)
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "home"))
    assert torch.hub.get_dir() == str(tmp_path / "home" / "hub")
    torch.hub.set_dir(tmp_path / "cache")
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "someone_models_main").symlink_to(folder)
    assert torch.hub.list("someone/models") == ["tiny"]
    assert torch.hub.help("someone/models:main", "tiny") == "A tiny model."
    assert torch.hub.load("someone/models", "tiny").out_features == 1
    with pytest.raises(RuntimeError, match="the repo could not be found in the cache"):
        torch.hub.load("someone/others", "tiny")


def test_files_are_fetched_once(tmp_path):
    source, target = tmp_path / "state-abc.pt", tmp_path / "kept"
    torch.save({"a": torch.ones(2)}, source)
    fetch = torch.hub.load_state_dict_from_url
    with pytest.raises(RuntimeError, match="invalid hash value"):
        fetch(source.as_uri(), str(target), check_hash=True)
    assert list(target.iterdir()) == []
    assert fetch(source.as_uri(), str(target))["a"].tolist() == [1, 1]
    source.unlink()
    assert list(fetch(source.as_uri(), str(target), weights_only=True)) == ["a"]
