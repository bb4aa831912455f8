"""Reads MySQL's packed DECIMAL: groups of nine digits in four bytes each, fewer digits in fewer bytes.

The first bit is the sign, inverted; a negative number has all bits inverted. Source: MySQL's decimal.cc, decimal2bin.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

#: bytes that hold 0..9 digits
BYTES = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
#: the texts of the most frequent fraction, of two digits; looking one up costs a third of formatting it
TWO_DIGITS = tuple(f"{number:02d}" for number in range(100))


def impossible(value: object) -> None:
    """Return what generated code calls for a value that no column of its type has."""
    raise ValueError(f"no value of the column's type is {value!r}")


def decimal_size(precision: int, scale: int) -> int:
    """Count the bytes of a packed DECIMAL(precision, scale)."""
    return sum(size for size, _ in _groups(precision - scale, scale))


@lru_cache(maxsize=256)
def decimal_code(precision: int, scale: int) -> tuple[str, str]:
    """Write Python source that decodes the packed bytes v$: statements, and f-string text of all its digits."""
    shift = 8 * decimal_size(precision, scale)
    positive = 1 << (shift - 1)
    terms: list[list[str]] = [[], []]  # of the whole part and of the fraction
    lines = [f'v$ = from_bytes(v$, "big") - {positive}; n$ = ""', 'if v$ < 0: v$ = ~v$; n$ = "-"']
    left = [precision - scale, scale]
    for number, (size, digits) in enumerate(_groups(precision - scale, scale)):
        part = 0 if left[0] else 1
        left[part] -= digits
        shift -= 8 * size
        group, high = f"g{number}_$", f"v$ >> {shift} & " if shift else "v$ & "
        lines.append(f"{group} = {high}{(1 << 8 * size) - 1}")
        if part == 0 or scale != 2:  # which a look-up tests
            lines.append(f"if {group} > {10**digits - 1}: impossible({group})")
        terms[part].append(f"{group} * {10 ** left[part]}" if left[part] else group)
    whole, fraction = (" + ".join(part) or "0" for part in terms)
    tail = f"{{two_digits[{fraction}]}}" if scale == 2 else f"{{{fraction}:0{scale}d}}"
    return "\n".join(lines), f"{{n$}}{{{whole}}}" + (f".{tail}" if scale else "")


@lru_cache(maxsize=256)
def decimal_decoder(precision: int, scale: int) -> Callable[[bytes], str]:
    """Make a function that does the same, for values that are not in a row of their own."""
    prepare, text = (code.replace("$", "") for code in decimal_code(precision, scale))
    body = "\n".join(f"    {line}" for line in (*prepare.splitlines(), f"return f'{text}'"))
    namespace: dict[str, Any] = {"from_bytes": int.from_bytes, "two_digits": TWO_DIGITS, "impossible": impossible}
    exec(f"def decode(v):\n{body}", namespace)
    decode: Callable[[bytes], str] = namespace["decode"]
    return decode


def _groups(whole: int, scale: int) -> list[tuple[int, int]]:
    """(bytes, digits) of each group, in order."""
    groups = [(BYTES[whole % 9], whole % 9)] if whole % 9 else []
    groups += [(4, 9)] * (whole // 9 + scale // 9)
    if scale % 9:
        groups.append((BYTES[scale % 9], scale % 9))
    return groups
