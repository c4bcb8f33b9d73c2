"""Damage to files, as chance or malice does it."""

import random

from limits import often


def flipped(data, draw):
    """Some bits changed."""
    bad = bytearray(data)
    for _ in range(draw.choice((1, 1, 2, 8))):
        bad[draw.randrange(len(bad))] ^= 1 << draw.randrange(8)
    return bytes(bad)


def cut(data, draw):
    return data[: draw.randrange(len(data))]


def grown(data, draw):
    """A piece of it is repeated."""
    low, high = sorted(draw.randrange(len(data)) for _ in range(2))
    return data[:high] + data[low:high] * draw.choice((1, 2, 50)) + data[high:]


MEANINGFUL = (b"\xff\xff\xff\x7f", b"\0" * 8, b"\xff" * 8, b"R", b"c", b"(", b".", b"9" * 40, b"[",
              b"{")  # fmt: skip


def exchanged(data, draw):
    """Bytes that mean something elsewhere."""
    bad = bytearray(data)
    place = draw.randrange(len(bad))
    bad[place : place + draw.choice((1, 4, 8))] = draw.choice(MEANINGFUL)
    return bytes(bad)


KINDS = (flipped, cut, grown, exchanged)


def damaged(data, count, seed=0):
    """`count` damaged forms of `data`."""
    draw = random.Random(seed)
    for _ in often(count):
        yield draw.choice(KINDS)(data, draw)
