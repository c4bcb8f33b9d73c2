"""Benchmarks beside the peers: plain scripts, also installed for `python -m wengert bench`."""
