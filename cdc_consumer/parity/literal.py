"""Reads the literals that `canonical.literal` makes; what each says, as a type of its own.

    NULL                                            Null()
    -12   169.09   1e15                             Number("-12")...
    '2022-02-23 11:22:00.000000'                    Moment("2022-02-23 11:22:00.000000")
    _utf8mb4 x'6162'                                Text("utf8mb4", b"ab")
    x'00ff'                                         Bytes(b"\\x00\\xff")
    CAST(CONVERT(x'7b7d' USING utf8mb4) AS JSON)    Json(b"{}")

`sql` of each is the very literal it was read from.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from shared.statements.tokens import CODECS as _TRUSTED

#: MySQL's character sets -> Python's codecs. Some do not agree with MySQL in every character: they are good enough to
#: show a text and to tell what became of it. What is missing (swe7, whose brackets are letters) is taken as bytes
CODECS = {name: codec for name, codec in _TRUSTED.items() if name != "binary"} | {
    "big5": "big5", "cp1256": "cp1256", "cp866": "cp866", "dec8": "latin_1", "eucjpms": "euc_jp", "gb18030": "gb18030",
    "greek": "iso8859_7", "hebrew": "iso8859_8", "koi8u": "koi8_u", "sjis": "cp932", "ujis": "euc_jp",
    "ucs2": "utf_16_be", "utf16": "utf_16_be", "utf16le": "utf_16_le", "utf32": "utf_32_be",
}  # fmt: skip

_LITERAL = re.compile(
    r"(?P<null>NULL)"
    r"|(?P<number>-?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)"
    r"|'(?P<moment>[-0-9:. ]+)'"
    r"|_(?P<charset>[a-z0-9]+) x'(?P<text>[0-9a-f]*)'"
    r"|x'(?P<bytes>[0-9a-f]*)'"
    r"|CAST\(CONVERT\(x'(?P<json>[0-9a-f]+)' USING utf8mb4\) AS JSON\)"
)


@dataclass(frozen=True, slots=True)
class Null:
    """Stands for NULL."""

    @property
    def sql(self) -> str:
        return "NULL"


@dataclass(frozen=True, slots=True)
class Number:
    """Holds a number of any type as the server writes it, also of BIT and YEAR, and of an ENUM's error value 0."""

    digits: str

    @property
    def whole(self) -> int | None:
        """Return its value; None when it has decimals or an exponent."""
        return int(self.digits) if self.digits.lstrip("-").isdecimal() else None

    @property
    def sql(self) -> str:
        return self.digits


@dataclass(frozen=True, slots=True)
class Moment:
    """Holds a DATE, TIME, DATETIME or TIMESTAMP without its quotes."""

    text: str

    @property
    def sql(self) -> str:
        return f"'{self.text}'"


@dataclass(frozen=True, slots=True)
class Text:
    """Holds a text, or the name of an ENUM's or SET's members, in the bytes of its character set."""

    charset: str
    data: bytes

    def decoded(self, errors: str = "strict") -> str | None:
        """The characters, None where they cannot be read; `errors` is as of `bytes.decode`."""
        codec = CODECS.get(self.charset)
        try:
            return None if codec is None else self.data.decode(codec, errors)
        except UnicodeError:
            return None

    @property
    def sql(self) -> str:
        return f"_{self.charset} x'{self.data.hex()}'"


@dataclass(frozen=True, slots=True)
class Bytes:
    """Holds a value without a character set: binary, spatial, or a vector."""

    data: bytes

    @property
    def sql(self) -> str:
        return f"x'{self.data.hex()}'"


@dataclass(frozen=True, slots=True)
class Json:
    """Holds the text of a JSON document in UTF-8."""

    data: bytes

    @property
    def sql(self) -> str:
        return f"CAST(CONVERT(x'{self.data.hex()}' USING utf8mb4) AS JSON)"


Parsed: TypeAlias = "Null | Number | Moment | Text | Bytes | Json"

_READERS: dict[str, Callable[[re.Match[str]], Parsed]] = {
    "null": lambda found: Null(),
    "number": lambda found: Number(found[0]),
    "moment": lambda found: Moment(found["moment"]),
    "text": lambda found: Text(found["charset"], bytes.fromhex(found["text"])),
    "bytes": lambda found: Bytes(bytes.fromhex(found["bytes"])),
    "json": lambda found: Json(bytes.fromhex(found["json"])),
}


def parse(literal: str) -> Parsed:
    """Read what a literal says. Raises ValueError for any other text, so that what passes is safe as a part of SQL."""
    found = _LITERAL.fullmatch(literal)
    if found is None:
        raise ValueError(f"no literal: {literal[:200]!r}")
    return _READERS[str(found.lastgroup)](found)
