"""Reads what SHOW CREATE prints, in a session without ANSI_QUOTES and NO_BACKSLASH_ESCAPES.

The tokens here are not those of shared/statements/tokens.py, which reads what any client wrote, in any character set
and sql_mode, and never further than a statement's head. This text is the server's own, in one form, and is read to its
end with the depth of its parentheses; one regular expression is enough for that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from shared.errors import AuditError

#: one token; "open" and "close" are the marks of a /*!80023 comment */, whose text is SQL to the server
_TOKEN = re.compile(
    r"""(?P<gap>    \s+ )
      | (?P<open>   /\*!\d* )
      | (?P<close>  \*/ )
      | (?P<name>   `(?:[^`]|``)*` )
      | (?P<string> '(?:[^'\\]|\\.|'')*' | "(?:[^"\\]|\\.|"")*" )
      | (?P<word>   [\w$.@]+ )
      | (?P<mark>   . )
    """,
    re.DOTALL | re.VERBOSE,
)
_KEY = re.compile(r"(?:UNIQUE |FULLTEXT |SPATIAL |VECTOR )?KEY (?P<name>`(?:[^`]|``)*`)")
_CONSTRAINT = re.compile(r"CONSTRAINT (?P<name>`(?:[^`]|``)*`) (?P<kind>FOREIGN KEY|CHECK) ")

#: name, kind and line of a constraint
Constraint = tuple[str, Literal["foreign key", "check"], str]


@dataclass(frozen=True, slots=True)
class Token:
    """Holds one token of a definition."""

    kind: str
    text: str
    #: where it begins
    start: int
    #: parentheses it stands in; of a parenthesis those around it
    depth: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def word(self) -> str:
        """Name it as grammar does: an unquoted word in upper case or a mark; "" for anything else."""
        return self.text.upper() if self.kind in ("word", "mark") else ""


@dataclass(frozen=True, slots=True)
class CreateTable:
    """SHOW CREATE TABLE in its parts, each without the comma that ends it."""

    #: by name, in their order
    columns: Mapping[str, str]
    keys: Mapping[str, str]
    constraints: tuple[Constraint, ...]
    options: str
    partitioning: str
    sql: str


def tokens(text: str) -> Iterator[Token]:
    """Yield all but blanks. Quotes that are not closed come as marks, which no server prints."""
    depth = 0
    for match in _TOKEN.finditer(text):
        kind, own = str(match.lastgroup), match.group()
        if own == ")" and kind == "mark":
            depth -= 1
        if kind != "gap":
            yield Token(kind, own, match.start(), depth)
        if own == "(" and kind == "mark":
            depth += 1


def name_of(quoted: str) -> str:
    """Read a name between backticks."""
    return quoted[1:-1].replace("``", "`")


def read_create_table(sql: str) -> CreateTable:
    """Raises AuditError for a line of no known kind."""
    columns: dict[str, str] = {}
    keys: dict[str, str] = {}
    constraints: list[Constraint] = []
    *lines, rest = _cut(sql)
    for line in lines:
        if line.startswith("`"):
            columns[name_of(next(tokens(line)).text)] = line
        elif line.startswith("PRIMARY KEY "):
            keys["PRIMARY"] = line
        elif key := _KEY.match(line):
            keys[name_of(key["name"])] = line
        elif constraint := _CONSTRAINT.match(line):
            kind: Literal["foreign key", "check"] = "check" if constraint["kind"] == "CHECK" else "foreign key"
            constraints.append((name_of(constraint["name"]), kind, line))
        else:
            raise AuditError(
                f"SHOW CREATE TABLE prints a line of a kind that this version does not know: {line[:200]}; leave its"
                " table out (exclude_tables in [filters]), and report the line"
            )
    end = _partitioning(rest)
    return CreateTable(columns, keys, tuple(constraints), rest[:end].strip(), rest[end:].strip(), sql)


def _partitioning(options: str) -> int:
    """Where /*!50100 PARTITION BY ... begins; what a comment of the table says is no partitioning."""
    opened = None
    for token in tokens(options):
        if opened is not None and token.word == "PARTITION":
            return opened
        opened = token.start if token.kind == "open" else None
    return len(options)


def _cut(sql: str) -> Iterator[str]:
    """The lines between the outer parentheses, and what follows them."""
    start = None
    for token in tokens(sql):
        if token.kind != "mark":
            continue
        if start is None and token.text == "(":
            start = token.start + 1
        elif start is not None and (
            (token.text == "," and token.depth == 1) or (token.text == ")" and token.depth == 0)
        ):
            yield sql[start : token.start].strip()
            start = token.start + 1
            if token.text == ")":
                yield sql[start:]
                return
