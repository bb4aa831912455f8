"""Normal forms: two spellings have the same one when they mean the same to every server from 8.0 to 9.7."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise

from cdc_consumer.parity.literal import Text
from cdc_consumer.parity.model import TableName
from cdc_consumer.parity.schema.ddl import Token, name_of, tokens

#: SQL as a sequence of tokens
Words = tuple[str, ...]
#: the first word of each clause of a column -> its tokens
Clauses = Mapping[str, list[Token]]

#: unquoted words that begin a clause of a column
_HEADS = frozenset(
    {
        "CHARACTER", "COLLATE", "GENERATED", "VIRTUAL", "STORED", "NOT", "NULL", "SRID", "INVISIBLE", "DEFAULT", "ON",
        "AUTO_INCREMENT", "COMMENT", "COLUMN_FORMAT", "STORAGE", "ENGINE_ATTRIBUTE", "SECONDARY_ENGINE_ATTRIBUTE",
    }
)  # fmt: skip
#: after these any word is theirs
_TAKING = frozenset({"NOT", "DEFAULT"})
#: widths of integers, which change no value; zerofill prints by them, and tinyint(1) stands for a boolean
_WIDTH = re.compile(r"^(tinyint|smallint|mediumint|int|bigint|year)\(\d+\)")
_UTF8 = re.compile(r"^utf8(?=_|$)")
_OPTION = re.compile(
    r"(?P<name>[A-Z][A-Z_ ]*?)\s*(?:=\s*|(?=`))(?P<value>'(?:[^'\\]|\\.|'')*'|`(?:[^`]|``)*`|\([^)]*\)|\w+)", re.DOTALL
)
_INTRODUCER = re.compile(r"_(?!binary$)\w+", re.IGNORECASE)
_DEFINER = re.compile(
    r"""(?P<before>CREATE\s+(?:ALGORITHM\s*=\s*\w+\s+)?)DEFINER\s*=\s*"""
    r"""(?P<account>(?:`(?:[^`]|``)*`|"(?:[^"]|"")*"|'[^']*'|\w+)@(?:`[^`]*`|"[^"]*"|'[^']*'|\w+))\s*"""
)
_CREATED = re.compile(r"""\b(?P<kind>PROCEDURE|FUNCTION|LIBRARY|EVENT) (?:`(?:[^`]|``)*`|"(?:[^"]|"")*")(?!\.)""")
_STATUS = re.compile(r"(?P<before>\bON COMPLETION (?:NOT )?PRESERVE) (?:ENABLE|DISABLE(?: ON (?:SLAVE|REPLICA))?)\b")


def charset(name: str | None) -> str | None:
    """Name a character set or a collation in one way: servers before 8.0.30 say utf8 for utf8mb3."""
    return name if name is None else _UTF8.sub("utf8mb3", name)


def column_type(text: str) -> str:
    """Return a COLUMN_TYPE without what changes no value of the column."""
    if text.endswith("zerofill"):
        return text
    return "geomcollection" if text == "geometrycollection" else _WIDTH.sub(r"\1", text)


def sql(text: str) -> Words:
    """Return a clause the server printed, without /*!80000 marks, its literals as the characters they stand for.

    A server that alters a table writes the literals of its expressions in other character sets: _latin1'a' for
    _utf8mb4'a'. But the same bytes behind two introducers are two texts.
    """
    return _normal(list(tokens(text)))


def table_options(text: str) -> Mapping[str, str]:
    """Name -> value of the options SHOW CREATE TABLE prints."""
    return {option["name"]: option["value"] for option in _OPTION.finditer(text)}


def _normal(own: list[Token]) -> Words:
    return tuple(_words([each for each in own if each.kind not in ("open", "close")]))


def _words(own: list[Token]) -> Iterator[str]:
    passed = 0
    for index, token in enumerate(own):
        following = own[index + 1 : index + 3]
        if passed:
            passed -= 1
        elif token.kind != "word":
            yield token.text
        elif _INTRODUCER.fullmatch(token.text) and following and following[0].kind == "string":
            yield _characters(token.text[1:].lower(), following[0].text)
            passed = 1
        else:
            word = token.text.lower()
            yield _UTF8.sub("utf8mb3", word)
            if word == "current_timestamp" and [each.text for each in following] == ["(", ")"]:
                passed = 2


def _characters(charset: str, literal: str) -> str:
    """A literal in its quotes, whose bytes were read as UTF-8, in characters; else as it is, with its character set."""
    characters = Text(charset, literal.encode("utf-8", "surrogateescape")).decoded()
    return f"{literal} {charset}" if characters is None else characters


def key(line: str) -> Words:
    """Return a key without its name, its comment and what is so by default."""
    return _without(_key(line), ("comment", None))


def key_but_visibility(line: str) -> Words:
    """Return a key without its name, with its comment."""
    return _without(_key(line), ("invisible",))


def key_parts(line: str) -> Words:
    """Return what MySQL knows a key by: its kind and its parts."""
    text = _key(line)
    return text[: len(text) - text[::-1].index(")")]


def is_visible(line: str) -> bool:
    """Tell whether the optimizer may use a key."""
    return _key(line) == key_but_visibility(line)


def _key(line: str) -> Words:
    own = list(tokens(line))
    parts = next(index for index, token in enumerate(own) if token.text == "(")
    text = _normal([each for index, each in enumerate(own) if index > parts or each.kind != "name"])
    text = tuple(word if word[0] in "'\"" else word.lower() for word in text)
    # InnoDB leaves the size of blocks to the table, yet each key keeps what the table had when it was made
    return _without(text, ("using", "btree"), ("key_block_size", "=", None))


def foreign_key_columns(line: str) -> tuple[str, ...]:
    """Names of the columns that refer."""
    own = list(tokens(line))
    end = next(index for index, token in enumerate(own) if token.word == ")")
    return tuple(name_of(token.text) for token in own[:end] if token.kind == "name" and token.depth)


def referenced_table(table: TableName, line: str) -> TableName:
    """Return the table that a foreign key of `table` refers to."""
    own = list(tokens(line))
    after = next(index for index, token in enumerate(own) if token.word == "REFERENCES") + 1
    first = name_of(own[after].text)
    if own[after + 1].text == ".":
        return TableName(first, name_of(own[after + 2].text))
    return TableName(table.database, first)


def constraint(line: str) -> Words:
    """Return a constraint without its name and what is so by default."""
    return _without(sql(line)[2:], ("on", "delete", "restrict"), ("on", "update", "restrict"))


def partitioning(text: str) -> Words:
    """Return a PARTITION BY clause without the engines of its partitions."""
    return _without(sql(text), ("engine", "=", None))


def comment(line: str) -> str:
    """Return the comment of a key as the server quotes it, "" without one."""
    own = list(tokens(line))
    return next((text.text for word, text in pairwise(own) if word.word == "COMMENT" and word.depth == 0), "")


def _without(text: Words, *phrases: tuple[str | None, ...]) -> Words:
    """None stands for any word."""
    kept: list[str] = []
    for word in text:
        kept.append(word)
        for phrase in phrases:
            end = kept[-len(phrase) :]
            if len(end) == len(phrase) and all(own in (each, None) for each, own in zip(end, phrase, strict=True)):
                del kept[-len(phrase) :]
    return tuple(kept)


def column_clauses(definition: str) -> Clauses:
    """A column's line of SHOW CREATE TABLE, clause by clause; its type is "TYPE"."""
    clauses: dict[str, list[Token]] = {"TYPE": []}
    own = clauses["TYPE"]
    for token in list(tokens(definition))[1:]:
        head = token.word if token.depth == 0 and token.word in _HEADS else ""
        if head and not (len(own) == 1 and own[0].word in _TAKING):
            own = clauses[head] = []
        if token.kind not in ("open", "close"):
            own.append(token)
    return clauses


def without_expression_default(definition: str) -> tuple[str, str]:
    """Return a column's line without its DEFAULT (expression), and that; "" when it has none."""
    default = column_clauses(definition).get("DEFAULT", [])
    if len(default) < 2 or default[1].text != "(":
        return definition, ""
    start, end = default[0].start, default[-1].end
    return f"{definition[:start].rstrip()}{definition[end:]}", definition[start:end]


def differ(head: str, leader: Clauses, follower: Clauses) -> bool:
    """Tell whether a clause means something else on the two sides."""
    return _normal(leader.get(head, [])) != _normal(follower.get(head, []))


def definer(definition: str) -> str:
    """Return with whose rights a view, routine or event was created to run; "" for a library, which has none."""
    found = _DEFINER.match(definition)
    return found["account"] if found else ""


def without_definer(definition: str) -> str:
    """Return a CREATE without whose rights it runs with."""
    return _DEFINER.sub(r"\g<before>", definition, count=1) if definer(definition) else definition


def qualified(definition: str, name: TableName) -> str:
    """A CREATE of a routine or an event with its database; a view has it already."""
    return _CREATED.sub(lambda match: f"{match['kind']} {name.sql}", definition, count=1)


def with_status(definition: str, status: str) -> str:
    """Return a CREATE EVENT with "ENABLE", "DISABLE" or nothing at all where it says whether the event runs."""
    return _STATUS.sub(rf"\g<before>{' ' * bool(status)}{status}", definition, count=1)
