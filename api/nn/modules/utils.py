"""Helpers of torch's under their place there."""

from __future__ import annotations

from typing import Any


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Strips `prefix` (such as "module.", of a parallel model) from the keys, in place."""
    for key in list(state_dict):
        if key.startswith(prefix):
            state_dict[key[len(prefix) :]] = state_dict.pop(key)
    metadata = getattr(state_dict, "_metadata", None)
    for key in list(metadata or ()):
        if key and key in (prefix.replace(".", ""), prefix):
            metadata.setdefault("", metadata.pop(key))
        elif key.startswith(prefix):
            metadata[key[len(prefix) :]] = metadata.pop(key)
