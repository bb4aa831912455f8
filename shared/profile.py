"""Profiles: the TOML file of one program, read into frozen types.

An unknown, missing or ill-typed key is a ProfileError that names the key and the file. Defaults are written once, here.
"""

from __future__ import annotations

import dataclasses
import os
import re
import types
import typing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import tomli

from shared.errors import ProfileError

T = TypeVar("T")

#: two times of day
WINDOW = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)")


@dataclass(frozen=True, slots=True)
class Tls:
    """How the connection is encrypted and what is verified."""

    #: "required" (encrypted, nobody verified), "verify-ca", "verify-identity" or "off"
    mode: str = "required"
    #: PEM file of the authority that signed the server's certificate
    ca: str | None = None
    #: PEM files of this client's certificate and key, when the server asks for one
    cert: str | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Database:
    """Address of one MySQL server."""

    user: str
    host: str = "127.0.0.1"
    port: int = 3306
    unix_socket: str | None = None
    password: str | None = None
    #: name of the environment variable that holds the password
    password_env: str | None = None
    tls: Tls | None = None

    def secret(self) -> str:
        """The password. Raises ProfileError when password_env names a variable that is not set."""
        if self.password_env is None:
            return self.password or ""
        try:
            return os.environ[self.password_env]
        except KeyError:
            raise ProfileError(f"environment variable {self.password_env}, named by password_env, is not set") from None

    def __str__(self) -> str:
        return self.unix_socket or f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Leader(Database):
    """The leader, and how the producer reads it."""

    #: where an empty topic begins: "earliest", "latest", a GTID set, or "file:offset"
    start: str = "earliest"
    #: the id this producer registers with; derived from the resource name and topic when absent
    server_id: int | None = None
    #: seconds between the leader's signs of life; a link silent for three of them is dead
    heartbeat_seconds: float = 5.0


@dataclass(frozen=True, slots=True)
class Follower(Database):
    """The follower, and how the consumer writes it."""

    #: the system's own database on the follower; never replicated
    system_database: str = "fluvio_cdc"
    #: seconds a statement waits for a lock before the transaction is tried again
    lock_wait_seconds: int = 30


@dataclass(frozen=True, slots=True)
class Filters:
    """Which databases take part; exactly one of the two is set."""

    include_dbs: tuple[str, ...] | None = None
    exclude_dbs: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """Where the events travel."""

    name: str
    #: "embedded" (a file on this machine) or "fluvio"
    backend: str = "embedded"
    #: embedded: the folder of the topics
    path: str = "~/mysql-cdc/topics"
    #: fluvio: host:port of the cluster; without it the active Fluvio profile decides
    endpoint: str | None = None
    #: days a record is kept; without it for ever
    retention_days: float | None = None


@dataclass(frozen=True, slots=True)
class ProducerProfile:
    mysql_resource_name: str
    database: Leader
    filters: Filters
    topic: TopicSettings


@dataclass(frozen=True, slots=True)
class ConsumerProfile:
    database: Follower
    filters: Filters
    topic: TopicSettings


@dataclass(frozen=True, slots=True)
class Report:
    """Where the audit writes what it found."""

    #: a folder; each run makes a folder of its own in it
    path: str = "~/mysql-cdc/reports"


@dataclass(frozen=True, slots=True)
class Limits:
    """What the audit may ask of the two servers."""

    #: connections that read rows at the same time
    leader_connections: int = 8
    follower_connections: int = 8
    #: the audit pauses while the leader runs more threads than these
    leader_threads: int = 40
    #: the audit pauses while the follower is further behind; seconds
    lag_seconds: float = 60.0
    #: rows compared in a second, in all; without it as fast as the servers answer
    rows_per_second: int | None = None
    #: time of day in which rows are read, "22:00-06:00" in local time; without it always
    window: str | None = None
    #: seconds the follower may take to reach a position of the leader before its rows count as undecided
    fence_seconds: float = 60.0
    #: seconds one statement may take
    statement_seconds: float = 600.0


@dataclass(frozen=True, slots=True)
class ParityProfile:
    leader: Leader
    follower: Follower
    filters: Filters
    report: Report = Report()
    limits: Limits = Limits()
    #: where the events travel; without it a difference is only proven while the leader writes nothing
    topic: TopicSettings | None = None


def load_producer(path: str | Path) -> ProducerProfile:
    """Read a producer profile. Raises ProfileError."""
    return _load(path, ProducerProfile)


def load_consumer(path: str | Path) -> ConsumerProfile:
    """Read a consumer profile. Raises ProfileError."""
    return _load(path, ConsumerProfile)


def load_parity(path: str | Path) -> ParityProfile:
    """Read the profile of an audit. Raises ProfileError."""
    return _load(path, ParityProfile)


def _load(path: str | Path, kind: type[T]) -> T:
    try:
        with open(path, "rb") as file:
            table = tomli.load(file)
    except OSError as error:
        raise ProfileError(f"cannot read profile {path}: {error.strerror}") from None
    except (tomli.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ProfileError(f"profile {path} is not valid TOML: {error}") from None
    try:
        profile = _build(table, kind, "")
        _check(profile)
    except ProfileError as error:
        raise ProfileError(f"{error} (profile {path})") from None
    return profile


def _build(table: dict[str, Any], kind: type[T], prefix: str) -> T:
    """Turn one TOML table into the dataclass `kind`; `prefix` is the dotted name so far, for messages."""
    hints = typing.get_type_hints(kind)
    fields = {field.name: field for field in dataclasses.fields(kind)}  # type: ignore[arg-type]  # kind is a dataclass
    for key in table:
        if key not in fields:
            raise ProfileError(f"unknown key {prefix}{key}; known here: {', '.join(fields)}")
    values: dict[str, Any] = {}
    for name, field in fields.items():
        if name in table:
            values[name] = _convert(table[name], hints[name], prefix + name)
        elif field.default is dataclasses.MISSING:
            if dataclasses.is_dataclass(hints[name]):
                raise ProfileError(f"missing table [{prefix}{name}]")
            raise ProfileError(f"missing key {prefix}{name}")
    return kind(**values)


def _convert(value: Any, hint: Any, name: str) -> Any:
    if isinstance(hint, types.UnionType):
        hint = next(option for option in typing.get_args(hint) if option is not type(None))
    if dataclasses.is_dataclass(hint):
        if not isinstance(value, dict):
            raise ProfileError(f"{name} must be a table")
        return _build(value, hint, name + ".")  # type: ignore[arg-type]  # a dataclass type, not an instance
    if typing.get_origin(hint) is tuple:
        if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
            raise ProfileError(f"{name} must be a list of database names")
        return tuple(value)
    if hint is float and type(value) is int:
        return float(value)
    if type(value) is not hint:
        words = {str: "a string", int: "a whole number", float: "a number"}
        raise ProfileError(f"{name} must be {words[hint]}, not {value!r}")
    return value


def _check(profile: Any) -> None:
    """Rules that span keys, or that a type does not say."""
    filters = profile.filters
    if (filters.include_dbs is None) == (filters.exclude_dbs is None):
        raise ProfileError("[filters] needs exactly one of include_dbs and exclude_dbs")
    if filters.include_dbs == ():
        raise ProfileError("filters.include_dbs is empty: nothing would be replicated")
    if isinstance(profile, ParityProfile):
        _check_parity(profile)
        return
    _check_database("database", profile.database)
    _check_topic(profile.topic)
    if isinstance(profile, ProducerProfile):
        _check_producer(profile)
    else:
        _check_follower("database", profile.database)


def _check_database(name: str, database: Database) -> None:
    """`name` is the profile's table, for messages."""
    if database.password is not None and database.password_env is not None:
        raise ProfileError(f"{name}.password and {name}.password_env exclude each other")
    if not 0 < database.port < 65536:
        raise ProfileError(f"{name}.port must be between 1 and 65535, not {database.port}")
    if database.tls is not None:
        _check_tls(name, database.tls)


def _check_follower(name: str, follower: Follower) -> None:
    if not 1 <= follower.lock_wait_seconds <= 3600:
        raise ProfileError(f"{name}.lock_wait_seconds must be 1 to 3600, not {follower.lock_wait_seconds}")


def _check_topic(topic: TopicSettings) -> None:
    if topic.backend not in ("embedded", "fluvio"):
        raise ProfileError(f'topic.backend must be "embedded" or "fluvio", not {topic.backend!r}')
    if not topic.name or set(topic.name) - set("abcdefghijklmnopqrstuvwxyz0123456789-"):
        raise ProfileError(f"topic.name may hold lower-case letters, digits and '-', not {topic.name!r}")
    if topic.retention_days is not None and topic.retention_days <= 0:
        raise ProfileError(f"topic.retention_days must be positive, not {topic.retention_days}")


def _check_parity(profile: ParityProfile) -> None:
    _check_database("leader", profile.leader)
    _check_database("follower", profile.follower)
    _check_follower("follower", profile.follower)
    if profile.topic is not None:
        _check_topic(profile.topic)
    limits = profile.limits
    for field in dataclasses.fields(limits):
        value = getattr(limits, field.name)
        if isinstance(value, (int, float)) and value <= 0:
            raise ProfileError(f"limits.{field.name} must be positive, not {value}")
    if limits.window is not None and not WINDOW.fullmatch(limits.window):
        raise ProfileError(f'limits.window must look like "22:00-06:00", not {limits.window!r}')


def _check_producer(profile: ProducerProfile) -> None:
    database = profile.database
    if not profile.mysql_resource_name:
        raise ProfileError("mysql_resource_name is empty")
    if not database.start:
        raise ProfileError('database.start must be "earliest", "latest", a GTID set or "file:offset", not empty')
    if database.server_id is not None and not 0 < database.server_id < 1 << 32:
        raise ProfileError(f"database.server_id must be 1 to 4294967295, not {database.server_id}")
    if not 0.1 <= database.heartbeat_seconds <= 3600:
        raise ProfileError(f"database.heartbeat_seconds must be 0.1 to 3600, not {database.heartbeat_seconds}")


def _check_tls(name: str, tls: Tls) -> None:
    modes = ("off", "required", "verify-ca", "verify-identity")
    if tls.mode not in modes:
        raise ProfileError(f"{name}.tls.mode must be one of {', '.join(modes)}, not {tls.mode!r}")
    if tls.mode.startswith("verify") and tls.ca is None:
        raise ProfileError(f'{name}.tls.mode = "{tls.mode}" needs {name}.tls.ca')
    if (tls.cert is None) != (tls.key is None):
        raise ProfileError(f"{name}.tls.cert and {name}.tls.key go together")
    for part in ("ca", "cert", "key"):
        file = getattr(tls, part)
        if file is not None and not Path(file).expanduser().is_file():
            raise ProfileError(f"{name}.tls.{part} is not a file: {file}")
