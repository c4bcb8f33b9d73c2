"""One file per kind of op; each op is defined once. Importing this package fills the catalogue."""

from . import (
    arithmetic,
    compare,
    creation,
    indexing,
    joining,
    mathematics,
    operators,
    products,
    reduce,
    scans,
    views,
)
