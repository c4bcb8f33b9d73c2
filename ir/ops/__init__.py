"""One file per kind of op; each op is defined once."""
