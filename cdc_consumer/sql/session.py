"""Sets session variables: what row changes need, and what a Query ran with on the leader."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from cdc_consumer.sql import literals

#: what the literals of `literals.py` need, and nothing a server-wide default may bend
STRICT_MODE = "'STRICT_ALL_TABLES,ALLOW_INVALID_DATES,NO_AUTO_VALUE_ON_ZERO'"
#: the same, for a statement that writes the error value of an ENUM
RELAXED_MODE = "'ALLOW_INVALID_DATES,NO_AUTO_VALUE_ON_ZERO'"
#: id of utf8mb4_0900_ai_ci
UTF8MB4 = "255"

ROWS: Mapping[str, str] = {
    "sql_mode": STRICT_MODE,
    "foreign_key_checks": "1",
    "unique_checks": "1",
    "sql_auto_is_null": "0",
    "character_set_client": UTF8MB4,
    "collation_connection": UTF8MB4,
    "time_zone": "'+00:00'",
    "timestamp": "DEFAULT",
}


class RowMode(NamedTuple):
    """Says in which session a statement changes rows."""

    foreign_key_checks: bool = True
    #: for one that writes the error value of an ENUM, or computes what a strict session would refuse
    relaxed: bool = False
    #: of the leader, where generated columns are computed
    time_zone: str = "+00:00"
    #: modes by which an expression is computed, as the leader's sql_mode has them
    modes: int = 0


#: modes by which an expression is computed, by their bits
_COMPUTING = {1 << 6: "NO_UNSIGNED_SUBTRACTION", 1 << 32: "TIME_TRUNCATE_FRACTIONAL"}


def computing_mode(foreign_key_checks: bool, session: Mapping[str, Any]) -> RowMode:
    """Return the mode in which generated columns become what they are on the leader. Raises ValueError, TypeError.

    `session` is that of the rows.
    """
    zone, modes = session.get("time_zone", "+00:00"), session.get("sql_mode", 0)
    if type(zone) is not str or type(modes) is not int:
        raise TypeError(f"no session of rows: {dict(session)}")
    return RowMode(foreign_key_checks, True, zone, modes)


@lru_cache(maxsize=256)
def row_settings(mode: RowMode) -> Mapping[str, str]:
    """Return the variables of a statement that changes rows."""
    sql_mode = RELAXED_MODE if mode.relaxed else STRICT_MODE
    names = [sql_mode.strip("'"), *(name for bit, name in _COMPUTING.items() if mode.modes & bit)]
    return {
        **ROWS,
        "foreign_key_checks": "1" if mode.foreign_key_checks else "0",
        "sql_mode": f"'{','.join(names)}'",
        "time_zone": literals.text(mode.time_zone),
    }


#: a leader writes a variable into its binlog when it differs from these or when the statement used it
QUERY_DEFAULTS: Mapping[str, str] = {
    "foreign_key_checks": "1",
    "unique_checks": "1",
    "sql_auto_is_null": "0",
    "time_zone": "'+00:00'",
    "timestamp": "DEFAULT",
    "lc_time_names": "0",
    "sql_require_primary_key": "0",
}

#: switched off for good where the server knows them: the binlog does not tell what the leader's session had
SWITCHED_OFF = (
    "innodb_strict_mode",
    "restrict_fk_on_non_standard_key",
    "sql_generate_invisible_primary_key",
    "sql_require_primary_key",
)

#: variables by which a literal is read
_CHARSET = ("character_set_client", "collation_connection")
_MOMENT = re.compile(r"\d+(\.\d{1,6})?", re.ASCII)


def _moment(value: Any) -> str:
    text = value if isinstance(value, str) else f"{value:.6f}"
    if not _MOMENT.fullmatch(text):
        raise ValueError(f"no timestamp: {value!r}")
    return text


def _number(value: Any) -> str:
    return str(int(value)) if isinstance(value, bool) else literals.integer(value)


#: variables an event may name, and how their values are written
_VARIABLES: dict[str, Callable[[Any], str]] = {
    **dict.fromkeys(
        (
            "sql_mode",
            "foreign_key_checks",
            "unique_checks",
            "sql_auto_is_null",
            "auto_increment_increment",
            "auto_increment_offset",
            "character_set_client",
            "collation_connection",
            "collation_server",
            "collation_database",
            "lc_time_names",
            "explicit_defaults_for_timestamp",
            "default_collation_for_utf8mb4",
            "sql_require_primary_key",
        ),
        _number,
    ),
    "time_zone": literals.text,
    "timestamp": _moment,
}

#: told by an event beside the session's variables: a setting of the server, the account that ran the statement, and
#: what is written into the statement itself
NOT_VARIABLES = frozenset({"lower_case_table_names", "invoker", "default_table_encryption"})


def of_query(session: Mapping[str, Any]) -> dict[str, str]:
    """Return the variables of a Query's session as SQL. Raises ValueError on an unknown name or an impossible value."""
    settings = dict(QUERY_DEFAULTS)
    for name, value in session.items():
        if name in NOT_VARIABLES:
            continue
        if name not in _VARIABLES:
            raise ValueError(f"unknown session variable {name!r}")
        try:
            settings[name] = _VARIABLES[name](value)
        except TypeError:
            raise ValueError(f"session variable {name} cannot be {value!r}") from None
    return settings


class Session:
    """Knows what the variables of one connection are, so that only differences are sent."""

    def __init__(self, values: Mapping[str, str]) -> None:
        """`values` are the variables known at the start."""
        self._values = dict(values)

    def change(self, wanted: Mapping[str, str]) -> list[str]:
        """Return the statements that make the session have these values, none when it has them. They must then run.

        What a literal means depends on the character set of the session: it is utf8mb4 while the others are set.
        """
        changes = {name: value for name, value in wanted.items() if self._values.get(name) != value}
        self._values.update(changes)
        charset = {name: changes.pop(name) for name in _CHARSET if name in changes}
        returns = self._values.get("collation_connection") == UTF8MB4
        parts = [charset, changes] if returns else [changes, charset]
        return ["SET " + ", ".join(f"{name} = {value}" for name, value in part.items()) for part in parts if part]

    def begin(self, once: Mapping[str, str]) -> list[str]:
        """Return the statements that give a new session what row changes need, and what is set once for its life."""
        return self.change({**once, **ROWS})

    def used_database(self) -> None:
        """USE changes collation_database."""
        self._values.pop("collation_database", None)
