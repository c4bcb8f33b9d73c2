"""`torch.hub`: models by name from a folder with a `hubconf.py`, and state by its address.

Repositories are found in the local cache, by torch's names for its folders, and not fetched: the
error says so. Single files are fetched as torch does.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import urlparse
from urllib.request import Request, urlopen

from .serialization import load as load_file

__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url",
           "set_dir"]  # fmt: skip

_HASH = re.compile(r"-([a-f0-9]*)\.")
_directory: str | None = None


def get_dir() -> str:
    """get_dir(): the folder of the cache: as set, $TORCH_HOME/hub, or ~/.cache/torch/hub."""
    if _directory is not None:
        return _directory
    cache = os.getenv("XDG_CACHE_HOME", "~/.cache")
    home = os.getenv("TORCH_HOME", os.path.join(cache, "torch"))
    return os.path.join(os.path.expanduser(home), "hub")


def set_dir(d: str | os.PathLike[str]) -> None:
    """set_dir(d): the folder of the cache from now on."""
    global _directory
    _directory = os.path.expanduser(d)


def list(github: str, force_reload: bool = False, skip_validation: bool = False,
         trust_repo: Any = "check", verbose: bool = True) -> Any:  # fmt: skip
    """list("owner/name:ref"): the names that its `hubconf.py` offers."""
    module = _hubconf(_cached(github))
    return [f for f in dir(module) if callable(getattr(module, f)) and not f.startswith("_")]


def help(github: str, model: str, force_reload: bool = False, skip_validation: bool = False,
         trust_repo: Any = "check") -> Any:  # fmt: skip
    """help("owner/name:ref", model): what the model says of itself."""
    return _entry(_hubconf(_cached(github)), model).__doc__


def load(repo_or_dir: str, model: str, *args: Any, source: str = "github",
         trust_repo: Any = "check", force_reload: bool = False, verbose: bool = True,
         skip_validation: bool = False, **kwargs: Any) -> Any:  # fmt: skip
    """load(folder, model, *args, source="local"): what `model` of its `hubconf.py` gives."""
    source = source.lower()
    if source not in ("github", "local"):
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    folder = _cached(repo_or_dir) if source == "github" else repo_or_dir
    return _entry(_hubconf(folder), model)(*args, **kwargs)


def _cached(github: str) -> str:
    """The folder of a repository in the cache."""
    repository, _, ref = github.partition(":")
    owner, name = repository.split("/")
    for branch in (ref,) if ref else ("main", "master"):
        folder = os.path.join(get_dir(), "_".join((owner, name, branch.replace("/", "_"))))
        if os.path.exists(folder):
            return folder
    raise RuntimeError(
        "It looks like there is no internet connection and the repo could not be found in the "
        f"cache ({get_dir()}): repositories are not fetched here; clone {repository} and call "
        'hub.load(folder, model, source="local")'
    )


def _hubconf(folder: str) -> Any:
    """The module `hubconf.py` of a folder, which may import its neighbours."""
    path = os.path.join(folder, "hubconf.py")
    sys.path.insert(0, os.fspath(folder))
    try:
        spec: Any = importlib.util.spec_from_file_location("hubconf.py", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(os.fspath(folder))
    return module


def _entry(module: Any, model: Any) -> Any:
    """The function `model` of a `hubconf.py` whose dependencies are there."""
    if not isinstance(model, str):
        raise ValueError("Invalid input: model should be a string of function name")
    needed = getattr(module, "dependencies", None) or ()
    missing = [name for name in needed if not importlib.util.find_spec(name)]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")
    found = getattr(module, model, None)
    if found is None or not callable(found):
        raise RuntimeError(f"Cannot find callable {model} in hubconf")
    return found


def download_url_to_file(
    url: str, dst: str, hash_prefix: str | None = None, progress: bool = True
) -> None:
    """download_url_to_file(url, path): fetches; of a broken file nothing is left."""
    target = Path(os.path.expanduser(dst))
    digest = hashlib.sha256()
    with (
        urlopen(Request(url, headers={"User-Agent": "torch.hub"})) as source,
        tempfile.NamedTemporaryFile(dir=target.parent, delete=False) as kept,
    ):
        while block := source.read(1 << 17):
            kept.write(block)
            digest.update(block)
    try:
        if hash_prefix is not None and not digest.hexdigest().startswith(hash_prefix):
            raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got '
                               f'"{digest.hexdigest()}")')  # fmt: skip
        shutil.move(kept.name, target)
    finally:
        Path(kept.name).unlink(missing_ok=True)


def load_state_dict_from_url(
    url: str, model_dir: str | None = None, map_location: Any = None, progress: bool = True,
    check_hash: bool = False, file_name: str | None = None, weights_only: bool = False,
) -> Any:  # fmt: skip
    """load_state_dict_from_url(url): what the file holds, which is fetched once."""
    folder = os.path.join(get_dir(), "checkpoints") if model_dir is None else model_dir
    os.makedirs(folder, exist_ok=True)
    name = file_name or os.path.basename(urlparse(url).path)
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        sys.stderr.write(f'Downloading: "{url}" to {path}\n')
        found = _HASH.search(name) if check_hash else None
        download_url_to_file(url, path, found.group(1) if found else None, progress)
    return load_file(path, map_location=map_location, weights_only=weights_only)
