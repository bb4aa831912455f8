"""Both programs as child processes, and the profiles they read."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from docker.local.mysql_servers import Server
from docker.local.processes import Child
from kit.forked import Preloaded
from kit.preloaded import LATE, Death
from kit.topic import REPLICATION, toml_value, topic_table

ROOT = Path(__file__).resolve().parents[2]
#: the programs are run from this working copy, installed or not
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
KILL_AT = str(ROOT / "tests/kit/kill_at.py")
#: programs of which a run is a fork
_preloaded: dict[str, Preloaded] = {}


class Program:
    """A program that can be started and ended again and again; all its runs write to one log."""

    def __init__(self, module: str, profile: Path, *arguments: str, env: Mapping[str, str] | None = None) -> None:
        """`module` is "cdc_producer" or "cdc_consumer"; the log is next to the profile."""
        self.command = _command(module, profile, arguments)
        self.log = profile.with_name(f"{profile.stem}.{module}.log")
        self._module = module
        self._env = env
        self._child: Child | None = None

    def start(self, *, until: str | None = None, calls: int = 1) -> Program:
        """Start it; `until`: it stands still after so many calls of this function, "module:Class.name", to be killed."""
        assert not self.running, f"{self} is running"
        death = None if until is None else (until, "stop", calls)
        preloaded = _preloading(self._module, self._env)
        if preloaded is not None:
            self._child = preloaded.start(self.command[3:], self.log, death)
        else:
            command = _dying(self.command, death)
            self._child = Child(command, self.log, env={**ENVIRONMENT, **(self._env or {})})
        return self

    def stop(self, timeout: float = 90.0) -> int:
        """SIGTERM; returns the exit status, also of a program that has ended by itself."""
        assert self._child is not None, f"{self} was never started"
        return self._child.stop(timeout)

    def kill(self) -> None:
        """SIGKILL; nothing when it has ended or never began."""
        if self._child is not None:
            self._child.kill()

    def wait(self, timeout: float = 90.0) -> int:
        """Wait until it ends by itself; returns the exit status."""
        assert self._child is not None, f"{self} was never started"
        return self._child.wait(timeout)

    @property
    def running(self) -> bool:
        return self._child is not None and self._child.running

    @property
    def status(self) -> int | None:
        return None if self._child is None else self._child.status

    @property
    def pid(self) -> int:
        assert self._child is not None, f"{self} was never started"
        return self._child.pid

    @property
    def stderr(self) -> str:
        """All it has written so far, in all its runs."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def __enter__(self) -> Program:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.kill()

    def __str__(self) -> str:
        return " ".join(self.command[2:])


def run_program(
    module: str, profile: Path, *arguments: str, timeout: float = 180.0, env: Mapping[str, str] | None = None,
    death: Death | None = None,
) -> subprocess.CompletedProcess[str]:  # fmt: skip
    """Run a program to its end, or until its death. Raises subprocess.TimeoutExpired, which holds what it wrote."""
    preloaded = _preloading(module, env)
    if preloaded is not None:
        return preloaded.run([str(profile), *arguments], timeout, death)
    return subprocess.run(
        _dying(_command(module, profile, arguments), death),
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        stdin=subprocess.DEVNULL,
        env={**ENVIRONMENT, **(env or {})},
    )


def _preloading(module: str, env: Mapping[str, str] | None) -> Preloaded | None:
    """Return what forks runs of this program, None for one that must be started."""
    if env is not None or module not in LATE or not hasattr(os, "pidfd_open"):
        return None
    if module not in _preloaded:
        _preloaded[module] = Preloaded(module, ENVIRONMENT)
    return _preloaded[module]


def _command(module: str, profile: Path, arguments: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", module, str(profile), *arguments]


def _dying(command: list[str], death: Death | None) -> list[str]:
    """The command of a program that dies on its way."""
    return command if death is None else [command[0], KILL_AT, *map(str, death), *command[2:]]


class Profiles(NamedTuple):
    """The two profiles of one leader, topic and follower."""

    producer: Path
    consumer: Path


def write_profiles(
    folder: Path,
    leader: Server,
    follower: Server,
    *,
    include_dbs: Sequence[str] | None = None,
    start: str | None = None,
    system_database: str | None = None,
    producer: Mapping[str, Mapping[str, Any]] | None = None,
    consumer: Mapping[str, Mapping[str, Any]] | None = None,
) -> Profiles:
    """Write producer.toml and consumer.toml into `folder`, with a topic of their own.

    include_dbs:      all databases when None
    start:            the leader's present position when None, so that other tests' events are not read
    system_database:  the consumer's own database; named after the first of include_dbs when None
    producer, consumer:   keys to add or replace, by table: {"database": {"heartbeat_seconds": 0.5}}

    One session applies unless `consumer` says otherwise: it is the reference that several are compared with.
    """
    filters = {"exclude_dbs": []} if include_dbs is None else {"include_dbs": list(include_dbs)}
    topic = topic_table(folder)
    source = {"host": leader.host, "port": leader.port, "user": "root", "start": start or binlog_end(leader)}
    own = system_database or f"{include_dbs[0] if include_dbs else 'fluvio'}_cdc"
    target = {"host": follower.host, "port": follower.port, "user": "root", "system_database": own}
    paths = Profiles(folder / "producer.toml", folder / "consumer.toml")
    made = {**topic, "replication": REPLICATION}
    _write(paths.producer, {"database": source, "filters": filters, "topic": made}, producer or {}, "mysql-srv1")
    one: dict[str, Mapping[str, Any]] = {
        "database": target,
        "filters": filters,
        "topic": topic,
        "apply": {"workers": 1},
    }
    _write(paths.consumer, one, consumer or {}, None)
    return paths


def binlog_end(leader: Server) -> str:
    """Where the leader writes next, as `start` takes it: "binlog.000003:157"."""
    file, offset = "LOCAL->>'$.binary_log_file'", "LOCAL->>'$.binary_log_position'"
    return str(leader.value(f"SELECT CONCAT({file}, ':', {offset}) FROM performance_schema.log_status"))


def _write(
    path: Path,
    tables: Mapping[str, Mapping[str, Any]],
    changes: Mapping[str, Mapping[str, Any]],
    resource: str | None,
) -> None:
    lines = [] if resource is None else [f'mysql_resource_name = "{resource}"']
    for name in {**tables, **changes}:
        lines.append(f"[{name}]")
        values = {**tables.get(name, {}), **changes.get(name, {})}
        lines += [f"{key} = {toml_value(value)}" for key, value in values.items() if value is not None]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")
