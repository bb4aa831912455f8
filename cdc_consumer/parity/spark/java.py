"""Starts Spark's Java process, and makes its start short."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyspark
from pyspark import SparkConf
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway

from shared.errors import AuditError

#: for a JVM that plans and waits but computes nothing the first compiler is enough
FLAGS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
#: seconds that writing the archive may take
ARCHIVE_SECONDS = 120.0
LOGGING = Path(__file__).with_name("log4j2.properties")


@dataclass(frozen=True, slots=True)
class Java:
    """Starts and ends the process that runs Spark's half of an audit."""

    #: py4j's
    gateway: Any
    #: None when spark-submit has started it
    process: subprocess.Popen[bytes] | None
    #: it writes the archive of its classes when it ends
    archiving: bool

    @property
    def slow_to_end(self) -> bool:
        """Is true when Java has something to do before it ends: tell a cluster's executors, or write its archive."""
        return self.process is None or self.archiving

    def end(self) -> None:
        """End a process of our own; it removes its files by itself."""
        if self.process is None:
            return
        if not self.archiving:
            self.process.terminate()
            return
        print("making the next start of Java faster, once ...", file=sys.stderr, flush=True)
        assert self.process.stdin is not None  # py4j's process ends with it
        self.process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(ARCHIVE_SECONDS)


def start(settings: Mapping[str, str], log: Path) -> Java:
    """Start Java, or take the one spark-submit has started; `log` gets what it writes."""
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    flags = [] if submitted else jvm_flags()
    conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    conf.set("spark.driver.extraJavaOptions", " ".join(flags))
    # of the short-lived JVM that puts the command line together
    os.environ.setdefault("SPARK_LAUNCHER_OPTS", " ".join(FLAGS))
    require_java()
    try:
        with log.open("ab") as file:
            gateway: Any = launch_gateway(conf, popen_kwargs={"stdout": file, "stderr": file})  # type: ignore[no-untyped-call]
    except PySparkRuntimeError as error:
        raise AuditError(f"Java did not start; {log} says why") from error
    process = None if submitted else gateway.proc
    return Java(gateway, process, any("ArchiveClassesAtExit" in flag for flag in flags))


def require_java() -> None:
    """Raise AuditError where there is no Java, and spark-submit has not started one."""
    if "PYSPARK_GATEWAY_PORT" not in os.environ and _java() is None:
        raise AuditError("Spark needs Java 17 or later: install it, or let JAVA_HOME name it")


def jvm_flags() -> list[str]:
    """Return flags for the archive of loaded classes: made when the first run has ended, used by all later ones."""
    flags = [*FLAGS, f"-Dlog4j2.configurationFile={LOGGING}"]
    archive = class_archive()
    if archive is None:
        return flags
    if archive.exists():
        return [*flags, f"-XX:SharedArchiveFile={archive}"]
    archive.parent.mkdir(parents=True, exist_ok=True)
    return [*flags, f"-XX:ArchiveClassesAtExit={archive}"]


def class_archive() -> Path | None:
    """Tell where the archive of this Spark and this Java is kept; None when there can be none."""
    java = _java()
    if java is None or os.environ.get("SPARK_CONF_DIR"):
        return None  # a folder on the class path with files in it makes an archive useless
    # named after the files it is made of: to ask Java for its version would take a tenth of a second
    program = Path(java).resolve()
    made_of = f"{program} {program.stat().st_mtime_ns} {pyspark.__file__}"
    name = hashlib.sha256(made_of.encode()).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mysql-cdc"
    return cache / f"spark-{pyspark.__version__}-{name}.jsa"


def _java() -> str | None:
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java") if home is None else shutil.which(str(Path(home) / "bin" / "java"))
