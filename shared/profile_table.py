"""Turns a profile's TOML into frozen types: whatever is wrong is a ProfileError that names the key and the file."""

from __future__ import annotations

import dataclasses
import math
import os
import types
import typing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import tomli

from shared.errors import ProfileError

#: longest name of a file that Linux takes, and of a database that MySQL takes
FILE_NAME_BYTES, DATABASE_NAME_LENGTH = 255, 64
#: a wrong value is shown up to so many characters
SHOWN_LENGTH = 60
WORDS = {str: "a string", int: "a whole number", float: "a number", bool: "true or false"}


@dataclass(frozen=True, slots=True)
class ProfileTable:
    """One table of a profile: its fields are the keys it may have, those without a default the keys it must have."""

    def check(self, name: str) -> None:
        """Raise ProfileError when values of the right type do not fit; `name` is the table's, and ends in a dot."""


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
            raise ProfileError(f"unknown key {prefix}{_cut(key)}; known here: {', '.join(fields)}")
    values: dict[str, Any] = {}
    for name, field in fields.items():
        if name in table:
            values[name] = _convert(table[name], hints[name], prefix + name)
        elif field.default is dataclasses.MISSING:
            if dataclasses.is_dataclass(hints[name]):
                raise ProfileError(f"missing table [{prefix}{name}]")
            raise ProfileError(f"missing key {prefix}{name}")
    built = kind(**values)
    built.check(prefix)
    return built


def _convert(value: Any, hint: Any, name: str) -> Any:
    if isinstance(hint, types.UnionType):
        hint = next(option for option in typing.get_args(hint) if option is not type(None))
    if dataclasses.is_dataclass(hint):
        if not isinstance(value, dict):
            raise ProfileError(f"{name} must be a table")
        return _build(value, typing.cast(type[ProfileTable], hint), name + ".")
    if typing.get_origin(hint) is tuple:
        if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
            raise ProfileError(f"{name} must be a list of database names")
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
