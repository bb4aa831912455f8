"""Holds what the profiles of all programs share; what only one has stands in the profile.py beside that program.

Each table checks itself, and each default is written once, in its class.
"""

from __future__ import annotations

import hashlib
import ipaddress
import os
import ssl
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from shared.errors import ProfileError
from shared.profile_table import (
    DATABASE_NAME_LENGTH,
    TOPIC_NAME_LENGTH,
    ProfileTable,
    check_database_name,
    check_table_pattern,
    check_topic_name,
    expand,
    read,
    shown,
    template_error,
    topic_name,
    typed,
)

#: days that a record may be kept: a minute or two, a century
RETENTION_DAYS = (0.001, 36_500.0)
#: SPUs that may keep one topic
MOST_REPLICAS = 32


@dataclass(frozen=True, slots=True)
class Tls(ProfileTable):
    """Says how the connection is encrypted and what is verified."""

    #: "required" (encrypted, nobody verified), "verify-ca", "verify-identity" or "off"
    mode: str = "required"
    #: PEM file of the authority that signed the server's certificate
    ca: str | None = None
    #: PEM files of this client's certificate and key, when the server asks for one
    cert: str | None = None
    key: str | None = None

    @property
    def verified(self) -> bool:
        """Tell whether the server has to prove who it is."""
        return self.mode.startswith("verify")

    def check(self, name: str) -> None:
        modes = ("off", "required", "verify-ca", "verify-identity")
        if self.mode not in modes:
            raise ProfileError(f"{name}mode must be one of {', '.join(modes)}, not {shown(self.mode)}")
        if self.verified and self.ca is None:
            raise ProfileError(f'{name}mode = "{self.mode}" needs {name}ca')
        if (self.cert is None) != (self.key is None):
            raise ProfileError(f"{name}cert and {name}key go together")
        for part in ("ca", "cert", "key"):
            file = getattr(self, part)
            if file is not None and not expand(file, name + part).is_file():
                raise ProfileError(f"{name}{part} is not a file: {file}")
        try:
            self.context()
        except OSError as error:  # SSLError is one
            raise ProfileError(f"the files of {name[:-1]} cannot be used: {error.strerror or error}") from None

    def context(self) -> ssl.SSLContext:
        """What a connection is encrypted with, unless mode is "off". Raises OSError."""
        # not ssl.create_default_context, which reads all the authorities of this machine and needs a tenth of a second
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = self.mode == "verify-identity"
        context.verify_mode = ssl.CERT_REQUIRED if self.verified else ssl.CERT_NONE
        if self.ca is not None:
            context.load_verify_locations(expand(self.ca, "ca"))
        if self.cert is not None and self.key is not None:
            context.load_cert_chain(expand(self.cert, "cert"), expand(self.key, "key"), password=_refuse_passphrase)
        return context


@dataclass(frozen=True, slots=True)
class DatabaseTls(Tls):
    """Says how the connection to a MySQL server is encrypted, and what is verified."""

    #: whether a server that was not verified, and is not on this machine, may get the password itself
    send_password_unverified: bool = False


@dataclass(frozen=True, slots=True)
class ClusterTls(Tls):
    """Says how the connection to a Fluvio cluster is encrypted, and what is verified."""

    #: the name that the cluster's certificate must be for
    domain: str | None = None

    def check(self, name: str) -> None:
        if self.mode not in ("required", "verify-identity"):
            raise ProfileError(f"{name}mode must be required or verify-identity, not {shown(self.mode)}")
        missing = [key for key in ("domain", "ca", "cert", "key") if self.verified and getattr(self, key) is None]
        if missing:
            raise ProfileError(f'{name}mode = "{self.mode}" needs {name}{missing[0]}')
        Tls.check(self, name)


@dataclass(frozen=True, slots=True)
class Database(ProfileTable):
    """Holds the address of one MySQL server."""

    user: str
    host: str = "127.0.0.1"
    port: int = 3306
    unix_socket: str | None = None
    password: str | None = None
    #: name of the environment variable that holds the password
    password_env: str | None = None
    tls: DatabaseTls | None = None

    def secret(self) -> str:
        """Read the password. Raises ProfileError when password_env names a variable that is not set."""
        if self.password_env is None:
            return self.password or ""
        try:
            return os.environ[self.password_env]
        except KeyError:
            raise ProfileError(f"environment variable {self.password_env}, named by password_env, is not set") from None

    @property
    def may_send_password(self) -> bool:
        """Tell whether the server may get the password itself, and not only the answer to a challenge."""
        if self.unix_socket is not None or _is_loopback(self.host):
            return True
        return self.tls is not None and (self.tls.verified or self.tls.send_password_unverified)

    def check(self, name: str) -> None:
        if self.password is not None and self.password_env is not None:
            raise ProfileError(f"{name}password and {name}password_env exclude each other")
        if not 0 < self.port < 65536:
            raise ProfileError(f"{name}port must be between 1 and 65535, not {shown(self.port)}")
        try:
            self.host.encode("idna")
        except UnicodeError as error:
            raise ProfileError(f"{name}host cannot be the name of a machine: {shown(self.host)} ({error})") from None
        if self.unix_socket is not None:
            expand(self.unix_socket, f"{name}unix_socket")

    def check_given(self, keys: Collection[str], name: str) -> None:
        for key in ("host", "port"):
            if key in keys and "unix_socket" in keys:
                raise ProfileError(f"{name}{key} and {name}unix_socket exclude each other")

    def __str__(self) -> str:
        return self.unix_socket or f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Filters(ProfileTable):
    """Which databases take part, and which of their tables; exactly one of the first two is set."""

    include_dbs: tuple[str, ...] | None = None
    exclude_dbs: tuple[str, ...] | None = None
    #: patterns of `database.table`: only these tables of the databases; all when absent
    include_tables: tuple[str, ...] | None = None
    #: and of these none
    exclude_tables: tuple[str, ...] | None = None

    def check(self, name: str) -> None:
        if (self.include_dbs is None) == (self.exclude_dbs is None):
            raise ProfileError(f"[{name[:-1]}] needs exactly one of include_dbs and exclude_dbs")
        if self.include_dbs == ():
            raise ProfileError(f"{name}include_dbs is empty: nothing would be replicated")
        for database in (*(self.include_dbs or ()), *(self.exclude_dbs or ())):
            check_database_name(database, f"{name}{'include' if self.include_dbs else 'exclude'}_dbs")
        if self.include_tables == ():
            raise ProfileError(f"{name}include_tables is empty: no table would be replicated")
        for key, patterns in (("include_tables", self.include_tables), ("exclude_tables", self.exclude_tables)):
            for pattern in patterns or ():
                check_table_pattern(pattern, name + key)


@dataclass(frozen=True, slots=True)
class TopicSettings(ProfileTable):
    """Says where the events travel."""

    name: str
    #: patterns of `database.table` and templates of the topics that their events go to; all others go to `name`
    routes: Mapping[str, str] | None = None
    #: the topic that is told of the binlog itself: files, GTIDs, heartbeats
    control: str | None = None
    #: of the topics of a producer with routes, those that are read; all when absent
    names: tuple[str, ...] | None = None
    #: "embedded" (a file on this machine) or "fluvio"
    backend: str = "embedded"
    #: embedded: the folder of the topics
    path: str = "~/mysql-cdc/topics"
    #: fluvio: host:port of the cluster; without it the active Fluvio profile decides
    endpoint: str | None = None
    #: days a record is kept, told to the writer; without it for ever
    retention_days: float | None = None
    #: fluvio: how many servers keep each record, told to the writer, which creates the topic
    replication: int = 1
    #: fluvio: how the connection to `endpoint` is encrypted
    tls: ClusterTls | None = None

    def check(self, name: str) -> None:
        if self.backend not in ("embedded", "fluvio"):
            raise ProfileError(f'{name}backend must be "embedded" or "fluvio", not {shown(self.backend)}')
        check_topic_name(self.name, f"{name}name")
        self._check_routes(name)
        expand(self.path, f"{name}path")
        for key, given in (("endpoint", self.endpoint is not None), ("replication", self.replication != 1)):
            if given and self.backend != "fluvio":
                raise ProfileError(f'{name}{key} needs {name}backend = "fluvio"')
        if self.tls is not None and self.endpoint is None:
            raise ProfileError(f"[{name}tls] needs {name}endpoint; the active Fluvio profile has TLS of its own")
        if not 1 <= self.replication <= MOST_REPLICAS:
            raise ProfileError(f"{name}replication must be 1 to {MOST_REPLICAS}, not {shown(self.replication)}")
        shortest, longest = RETENTION_DAYS
        if self.retention_days is not None and not shortest <= self.retention_days <= longest:
            raise ProfileError(f"{name}retention_days must be {shortest} to {longest:g}, not {self.retention_days}")

    def check_given(self, keys: Collection[str], name: str) -> None:
        if "path" in keys and self.backend == "fluvio":
            raise ProfileError(f'{name}path is for {name}backend = "embedded"; a cluster keeps its topics itself')

    def _check_routes(self, name: str) -> None:
        for pattern, template in (self.routes or {}).items():
            check_table_pattern(pattern, f"{name}routes")
            if problem := template_error(template):
                raise ProfileError(f'{name}routes."{pattern}" {problem}: {shown(template)}')
            longest = topic_name(template, "x" * DATABASE_NAME_LENGTH, "x" * DATABASE_NAME_LENGTH)
            check_topic_name(longest, f'{name}routes."{pattern}"')
        for topic in self.names or ():
            check_topic_name(topic, f"{name}names")
        if self.names == ():
            raise ProfileError(f"{name}names is empty: nothing would be read")
        if self.control is not None:
            check_topic_name(self.control, f"{name}control")
            if self.routes is None or self.control in (self.name, *self.routes.values()):
                raise ProfileError(f"{name}control needs [{name}routes], and a name that no other topic has")

    @property
    def identity(self) -> str:
        """Return what a follower keeps its position under: the name, with those of its topics that are read."""
        if self.names is None:
            return self.name
        whole = f"{self.name}/{'+'.join(sorted(set(self.names)))}"
        digest = hashlib.sha256(whole.encode()).hexdigest()
        return whole if len(whole) <= TOPIC_NAME_LENGTH else f"{whole[:100]}/{digest}"

    def check_read_only(self, name: str) -> None:
        """Raise ProfileError for a key that only the topic's writer heeds."""
        for key, given in (
            ("retention_days", self.retention_days is not None), ("replication", self.replication != 1),
            ("routes", self.routes is not None), ("control", self.control is not None),
        ):  # fmt: skip
            if given:
                raise ProfileError(f"{name}{key} is for the producer's profile, which writes the topic")


def load_topic(path: str | Path) -> TopicSettings:
    """Read the [topic] of any program's profile. Raises ProfileError."""
    found = read(path)
    return typed(path, {"topic": found["topic"]} if "topic" in found else {}, _AnyProfile).topic


@dataclass(frozen=True, slots=True)
class _AnyProfile(ProfileTable):
    topic: TopicSettings


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _refuse_passphrase() -> str:
    # without this OpenSSL would ask on the terminal, and wait
    raise ProfileError("the client's key has a passphrase, which nobody is there to type; store the key without one")
