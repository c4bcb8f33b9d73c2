"""One file per kind of op; each op is defined once. Importing this package fills the catalogue."""

from . import (
    arithmetic,
    closeness,
    compare,
    creation,
    extrema,
    gathering,
    indexing,
    joining,
    mathematics,
    norms,
    operators,
    products,
    reduce,
    scans,
    slices,
    softmax,
    splitting,
    variance,
    views,
)
