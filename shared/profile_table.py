"""Turns a profile's TOML into frozen types: whatever is wrong is a ProfileError that names the key and the file."""

from __future__ import annotations

import dataclasses
import math
import os
import re
import types
import typing
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import tomli

from shared.errors import ProfileError

#: longest name of a file that Linux takes, and of a database that MySQL takes
FILE_NAME_BYTES, DATABASE_NAME_LENGTH = 255, 64
#: longest name of a topic: a file's, with room for what is put behind it
TOPIC_NAME_LENGTH = 200
#: what no topic's name may hold
_NO_TOPIC = re.compile(r"[^a-z0-9-]")
#: what a template of topics' names may name
PLACES = ("{database}", "{table}")
#: a wrong value is shown up to so many characters
SHOWN_LENGTH = 60
WORDS = {str: "a string", int: "a whole number", float: "a number", bool: "true or false"}


@dataclass(frozen=True, slots=True)
class ProfileTable:
    """One table of a profile: its fields are the keys it may have, those without a default the keys it must have."""

    def check(self, name: str) -> None:
        """Raise ProfileError when values of the right type do not fit; `name` is the table's, and ends in a dot."""

    def check_given(self, keys: Collection[str], name: str) -> None:
        """Raise ProfileError when one of the `keys` that the profile has would not be heeded."""


T = TypeVar("T", bound=ProfileTable)


def load(path: str | Path, kind: type[T]) -> T:
    """Read the profile of the program whose profiles are of this class. Raises ProfileError."""
    return typed(path, read(path), kind)


def read(path: str | Path) -> dict[str, Any]:
    """Read a profile's TOML. Raises ProfileError."""
    try:
        with open(path, "rb") as file:
            return tomli.load(file)
    except (OSError, ValueError, RecursionError) as error:
        if isinstance(error, OSError):
            raise ProfileError(f"cannot read profile {path}: {error.strerror}") from None
        raise ProfileError(f"profile {path} is not valid TOML: {_cut(' '.join(str(error).split()))}") from None


def typed(path: str | Path, table: dict[str, Any], kind: type[T]) -> T:
    """Turn what was read from `path` into the class of its profile. Raises ProfileError, which names the file."""
    try:
        return _build(table, kind, "")
    except ProfileError as error:
        raise ProfileError(f"{error} (profile {path})") from None


def _build(table: dict[str, Any], kind: type[T], prefix: str) -> T:
    """Turn one TOML table into its class; `prefix` is the dotted name so far, for messages."""
    hints = typing.get_type_hints(kind)
    fields = {field.name: field for field in dataclasses.fields(kind)}
    for key in table:
        if key not in fields:
            raise ProfileError(f"unknown key {prefix}{_cut(key)}; known here: {', '.join(fields)}{_whose(prefix)}")
    values: dict[str, Any] = {}
    for name, field in fields.items():
        if name in table:
            values[name] = _convert(table[name], hints[name], prefix + name)
        elif field.default is dataclasses.MISSING:
            if dataclasses.is_dataclass(hints[name]):
                raise ProfileError(f"missing table [{prefix}{name}]{_whose(prefix)}")
            raise ProfileError(f"missing key {prefix}{name}{_whose(prefix)}")
    built = kind(**values)
    built.check(prefix)
    built.check_given(table.keys(), prefix)
    return built


def _whose(prefix: str) -> str:
    """What else may be wrong where a whole table or a key outside of all tables is: the programs differ in these."""
    return "" if prefix else "; or is it the profile of another program?"


def _convert(value: Any, hint: Any, name: str) -> Any:
    if isinstance(hint, types.UnionType):
        hint = next(option for option in typing.get_args(hint) if option is not type(None))
    if dataclasses.is_dataclass(hint):
        if not isinstance(value, dict):
            raise ProfileError(f"{name} must be a table")
        return _build(value, typing.cast(type[ProfileTable], hint), name + ".")
    if typing.get_origin(hint) is Mapping:
        if not isinstance(value, dict) or not all(isinstance(item, str) for item in value.values()):
            raise ProfileError(f"{name} must be a table of strings")
        return dict(value)
    if typing.get_origin(hint) is tuple:
        if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
            raise ProfileError(f"{name} must be a list of names")
        return tuple(value)
    if hint is float and type(value) is int and abs(value) < 1 << 53:
        return float(value)
    if type(value) is not hint or (hint is float and not math.isfinite(value)):
        raise ProfileError(f"{name} must be {WORDS[hint]}, not {shown(value)}")
    if hint is str:
        _check_text(value, name)
    return value


def _check_text(value: str, name: str) -> None:
    if "\0" in value:
        raise ProfileError(f"{name} holds a NUL character")
    if not value and not name.endswith("password"):
        raise ProfileError(f"{name} is empty")


def check_database_name(database: str, name: str) -> None:
    """Raise ProfileError when no database can have this name; `name` is the key that holds it."""
    if not 0 < len(database) <= DATABASE_NAME_LENGTH or "\0" in database or database.endswith(" "):
        raise ProfileError(f"{name} holds {shown(database)}, which cannot be the name of a database")


def check_table_pattern(pattern: str, name: str) -> None:
    """Raise ProfileError when this cannot be a pattern of `database.table`; `name` is the key that holds it."""
    database, dot, table = pattern.partition(".")
    if not dot or not database or not table or "\0" in pattern:
        raise ProfileError(f"{name} holds {shown(pattern)}, which is no database.table, with * for any characters")


def check_topic_name(topic: str, name: str) -> None:
    """Raise ProfileError when no topic can have this name; `name` is the key that holds it."""
    if not topic or set(topic) - set("abcdefghijklmnopqrstuvwxyz0123456789-"):
        raise ProfileError(f"{name} may hold lower-case letters, digits and '-', not {shown(topic)}")
    if len(topic) > TOPIC_NAME_LENGTH:
        raise ProfileError(f"{name} may have {TOPIC_NAME_LENGTH} characters, not {len(topic)}")


def topic_name(template: str, database: str, table: str) -> str:
    """Return the name that a template gives a table: in small letters, with hyphens for what no name may hold."""
    parts = re.split(r"(\{database\}|\{table\})", template)
    text = "".join({"{database}": database, "{table}": table}.get(part, part) for part in parts)
    return _NO_TOPIC.sub("-", text.lower())


def template_error(template: str) -> str:
    """Say what is wrong with a template; "" when nothing is."""
    rest = template
    for place in PLACES:
        rest = rest.replace(place, "")
    if "{" in rest or "}" in rest:
        return f"may name {' and '.join(PLACES)}, and nothing else in braces"
    return "" if template else "is empty"


def expand(path: str, name: str) -> Path:
    """Replace the ~ of a path by a home. Raises ProfileError, which says `name`, for one that cannot exist."""
    try:
        expanded = Path(path).expanduser()
    except RuntimeError:
        raise ProfileError(f"{name} names the home of a user that is not known: {shown(path)}") from None
    if any(len(os.fsencode(part)) > FILE_NAME_BYTES for part in expanded.parts):
        raise ProfileError(f"{name} holds a name of more than {FILE_NAME_BYTES} bytes: {shown(path)}")
    return expanded


def shown(value: Any) -> str:
    """Show a value from a profile in a message; of an array or a table only that it is one."""
    if isinstance(value, (dict, list)):
        return "a table" if isinstance(value, dict) else "an array"
    try:
        return _cut(repr(value))
    except ValueError:  # a whole number of thousands of digits
        return "one of so many digits"


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN_LENGTH else text[: SHOWN_LENGTH - 3] + "..."
