"""`torch.version`: which torch the names and semantics follow, and what it was built with."""

__version__ = "2.13.0+cpu"
cuda = None
hip = None
xpu = None
git_version = "unknown"
debug = False
