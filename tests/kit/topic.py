"""Records of a topic, as tests write and read them."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from shared.profile import ClusterTls, TopicSettings
from shared.topic import Record, Sealed, TopicReader
from shared.topic.record import seal

#: host:port of a Fluvio cluster that the tests may use; without one topics are files, and Fluvio is the double
CLUSTER = os.environ.get("CDC_TEST_FLUVIO")
#: how many of its servers keep each record of what the programs write; None: one
REPLICATION = int(os.environ.get("CDC_TEST_FLUVIO_REPLICATION", "0")) or None
#: and when it wants TLS, a folder with ca.crt, client.crt, client.key and, in a file `domain`, the name of its certificate
_TLS = os.environ.get("CDC_TEST_FLUVIO_TLS")
CLUSTER_TLS: ClusterTls | None = None
if _TLS is not None:
    CLUSTER_TLS = ClusterTls("verify-identity", *(f"{_TLS}/{file}" for file in ("ca.crt", "client.crt", "client.key")))
    CLUSTER_TLS = replace(CLUSTER_TLS, domain=Path(_TLS, "domain").read_text().strip())
VALUES = [b"%d" % number for number in range(4)]


class ListTopic:
    """The writer of a topic in memory."""

    def __init__(self) -> None:
        self.values: list[bytes] = []

    def last(self) -> Record | None:
        return Record(len(self.values) - 1, self.values[-1]) if self.values else None

    def append(self, records: Sequence[Sealed]) -> None:
        self.values += [record.value for record in records]

    def close(self) -> None:
        pass


_numbers = itertools.count(1)


def topic_table(folder: Path) -> dict[str, Any]:
    """The table [topic] of a topic that does not exist yet: a file in `folder`, or on the cluster if there is one."""
    if CLUSTER is None:
        return {"name": "events", "path": str(folder / "topics")}
    name = f"test-{time.time_ns():x}-{next(_numbers)}"
    return shared_table(TopicSettings(name, backend="fluvio", endpoint=CLUSTER, tls=CLUSTER_TLS))


def shared_table(settings: TopicSettings) -> dict[str, Any]:
    """The table [topic] of a topic that there is."""
    keys = ("name", "backend", "path") if settings.backend == "embedded" else ("name", "backend", "endpoint")
    tls = {} if settings.tls is None else {"tls": asdict(settings.tls)}
    return {key: getattr(settings, key) for key in keys} | tls


def toml_value(value: Any) -> str:
    """A value as TOML writes it; None removes a key."""
    if isinstance(value, dict):
        return (
            "{ " + ", ".join(f"{key} = {toml_value(inner)}" for key, inner in value.items() if inner is not None) + " }"
        )
    # JSON's strings, numbers and lists are TOML's too
    return json.dumps(value, ensure_ascii=False)


DELETE = """
import sys, fluvio
config = fluvio.FluvioConfig.new(sys.argv[1])
if sys.argv[3:]:
    config.set_tls_file_paths(*sys.argv[3:])
admin = fluvio.FluvioAdmin.connect_with_config(config)
if sys.argv[2] in [topic.name() for topic in admin.list_topics([sys.argv[2]])]:
    admin.delete_topic(sys.argv[2])
while sys.argv[2] in [topic.name() for topic in admin.list_topics([sys.argv[2]])]:
    pass
"""


def delete_topic(settings: TopicSettings) -> None:
    """Remove a topic, so that it can be created anew."""
    if settings.backend == "fluvio":
        # the client holds the interpreter's lock while it waits
        tls = settings.tls
        files = [] if tls is None else [str(file) for file in (tls.domain, tls.key, tls.cert, tls.ca)]
        command = [sys.executable, "-c", DELETE, str(settings.endpoint), settings.name, *files]
        subprocess.run(command, check=True, timeout=60)
        return
    for file in Path(settings.path).glob(f"{settings.name}.*"):
        file.unlink()


def numbered(values: Sequence[bytes], start: int = 0) -> list[Record]:
    """The records that hold these values from offset `start` on."""
    return [Record(offset, value) for offset, value in enumerate(values, start)]


def sealed(values: Sequence[bytes]) -> list[Sealed]:
    """Records that hold these values and no binlog events."""
    return [seal(value) for value in values]


def read(reader: TopicReader, count: int, seconds: float = 20.0) -> list[Record]:
    """The next `count` records or a few more; fewer when they do not come in time."""
    found: list[Record] = []
    deadline = time.monotonic() + seconds
    while len(found) < count and time.monotonic() < deadline:
        found += reader.read(0.1)
    return found
