"""MySQL's packed DECIMAL: groups of nine digits in four bytes each, fewer digits in fewer bytes.

The first bit is the sign, inverted; a negative number has all bits inverted. Source: MySQL's decimal.cc, decimal2bin.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

#: bytes that hold 0..9 digits
BYTES = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)


def decimal_size(precision: int, scale: int) -> int:
    """Bytes of a packed DECIMAL(precision, scale)."""
    return sum(size for size, _ in _groups(precision - scale, scale))


@lru_cache(maxsize=256)
def decimal_decoder(precision: int, scale: int) -> Callable[[bytes], str]:
    """A function from a packed value to all digits of its scale, for example -0.10."""
    positive = 1 << (8 * decimal_size(precision, scale) - 1)
    shift = 8 * decimal_size(precision, scale)
    sums: list[list[str]] = [[], []]  # terms of the whole part and of the fraction
    left = [precision - scale, scale]
    for size, digits in _groups(precision - scale, scale):
        part = 0 if left[0] else 1
        left[part] -= digits
        shift -= 8 * size
        sums[part].append(f"(number >> {shift} & {(1 << 8 * size) - 1}) * {10 ** left[part]}")
    whole, fraction = (" + ".join(terms) or "0" for terms in sums)
    digits_text = f"{{{whole}}}" + (f".{{{fraction}:0{scale}d}}" if scale else "")
    # Generated, because a loop over the groups costs more than the arithmetic.
    source = f"""
def decode(data):
    number = from_bytes(data, "big")
    if number >= {positive}:
        number -= {positive}
        return f"{digits_text}"
    number ^= {positive - 1}
    return f"-{digits_text}"
"""
    namespace = {"from_bytes": int.from_bytes}
    exec(source, namespace)
    return namespace["decode"]  # type: ignore[return-value]  # what the source defines


def _groups(whole: int, scale: int) -> list[tuple[int, int]]:
    """(bytes, digits) of each group, in order."""
    groups = [(BYTES[whole % 9], whole % 9)] if whole % 9 else []
    groups += [(4, 9)] * (whole // 9 + scale // 9)
    if scale % 9:
        groups.append((BYTES[scale % 9], scale % 9))
    return groups
