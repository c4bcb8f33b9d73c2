"""`functionalize`: there is nothing to remove, since the recorder turns writes into new values."""

import functools


def functionalize(func, *, remove="mutations"):
    """functionalize(func, *, remove='mutations'): a function with the same results."""
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            f"functionalize(f, remove={remove!r}): valid options for remove are 'mutations' and "
            "'mutations_and_views'"
        )

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        return func(*args, **kwargs)

    return wrapper
