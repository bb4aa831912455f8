"""A target that fails in every way, for the test of what watches them."""

from __future__ import annotations

import os


def broken(data: bytes) -> None:
    """The first byte tells how."""
    kind = data[0] % 4 if data else 0
    if kind == 0:
        raise KeyError(kind)
    while kind == 1:
        pass
    if kind == 2:
        bytearray(1 << 30)
    os._exit(7)


def seeds_of_broken() -> list[bytes]:
    return [bytes([kind]) for kind in range(4)]
