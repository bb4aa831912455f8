"""Shows SQL literals as people read them: nothing invisible, nothing ambiguous.

    NULL                             NULL
    -12   28806.56333333333          as they are
    '2022-02-23 11:22:00.000000'     2022-02-23 11:22:00.000000
    _latin1 x'4f6c6be920'            'Olké␣'
    x'00ff'                          0x00ff
    CAST(CONVERT(x'7b7d' USING utf8mb4) AS JSON)    {}

A character that cannot be seen has a sign: ␣ for a space at either end, ⟨LF⟩ for a line feed, ⟨U+200B⟩ for one
without a short name, ⟨xFF⟩ for a byte that is no character. A value that holds ␣, ⟨ or ⟩ itself shows ⟨U+2423⟩ and so
on, so two different texts never look alike, unless Unicode itself made twins of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from cdc_consumer.parity.literal import Bytes, Json, Moment, Text, parse

#: what stands for a value that was left out, see differences.without_values
WITHHELD = frozenset("=LF")

#: characters or bytes of a value shown in a row of its own
LIMIT = 240

#: printable by their category, and still not to be seen
_INVISIBLE = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0"
    + "".join(map(chr, [*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)]))
)
#: what stands for others
_STAND_INS = frozenset("␣⟨⟩")
_CONTROLS = (
    "NUL SOH STX ETX EOT ENQ ACK BEL BS TAB LF VT FF CR SO SI "
    "DLE DC1 DC2 DC3 DC4 NAK SYN ETB CAN EM SUB ESC FS GS RS US"
)


class Legible(NamedTuple):
    """Tells what a literal says: `text` as it is stored, shown between `before` and `after`."""

    before: str
    #: of a binary value its hexadecimal digits
    text: str
    after: str
    unit: Literal["characters", "bytes"] = "characters"


class _Signs(dict[int, str]):
    """Code point -> what is shown; filled as characters are met."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        """`known` characters show themselves."""
        super().__init__((ord(character), character) for character in known)

    def __missing__(self, code: int) -> str:
        self[code] = sign = _sign(code)
        return sign


def _sign(code: int) -> str:
    character = chr(code)
    if code < 0x20:
        return f"⟨{_CONTROLS.split()[code]}⟩"
    if 0xDC80 <= code <= 0xDCFF:
        return f"⟨x{code - 0xDC00:02X}⟩"
    if character.isprintable() and character not in _INVISIBLE | _STAND_INS:
        return character
    return f"⟨U+{code:04X}⟩"


_ALL = _Signs()
_UNSEEN = _Signs([*_STAND_INS, "\n"])


def visible(text: str) -> str:
    """One line with a sign for every character that cannot be seen, and for the signs themselves; spaces stay."""
    return text if text.isascii() and text.isprintable() else text.translate(_ALL)


def harmless(text: str) -> str:
    """Return the same for text that may hold signs already, or several lines: those stay."""
    return text if text.isascii() and text.isprintable() else text.translate(_UNSEEN)


def with_ends(text: str) -> str:
    """Return the same with a sign for each space at either end."""
    inner = text.strip(" ")
    if not inner:
        return "␣" * len(text)
    before = len(text) - len(text.lstrip(" "))
    return "␣" * before + visible(inner) + "␣" * (len(text) - len(inner) - before)


def read(literal: str) -> Legible:
    """Return what `literal` says; text that is no literal says itself."""
    try:
        value = parse(literal)
    except ValueError:
        return Legible("", "(withheld)" if literal in WITHHELD else literal, "")
    if isinstance(value, Text):
        # bytes that are no character become lone surrogates
        text = value.decoded("surrogateescape")
        return Legible("0x", value.data.hex(), "", "bytes") if text is None else Legible("'", text, "'")
    if isinstance(value, Bytes):
        return Legible("0x", value.data.hex(), "", "bytes")
    if isinstance(value, Json):
        return Legible("", value.data.decode("utf-8", "surrogateescape"), "")
    return Legible("", value.text if isinstance(value, Moment) else literal, "")


def display(literal: str, limit: int | None = LIMIT) -> str:
    """What people read for `literal`; more than `limit` characters or bytes are cut, and their number told."""
    shown = read(literal)
    step = 2 if shown.unit == "bytes" else 1
    size = len(shown.text) // step
    if limit is None or size <= limit:
        return shown.before + with_ends(shown.text) + shown.after
    return f"{shown.before}{visible(shown.text[: limit * step])}…{shown.after} ({size:,} {shown.unit})"
