"""The Spark session of an audit, and what makes its start short; the only file that knows pyspark."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import zipfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

import pyspark
from pyspark import SparkConf, SparkContext
from pyspark.accumulators import AccumulatorParam
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from cdc_consumer.parity.task import Outcome, Setup, Task, run

#: of the driver's JVM, which plans and waits but computes nothing: the first compiler is enough for it
LOGGING = Path(__file__).with_name("log4j2.properties")
JVM_FLAGS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", f"-Dlog4j2.configurationFile={LOGGING}")
#: of a task whose worker was lost
TRIES = 3
_LOCAL = re.compile(r"local(?:\[(\*|\d+)(?:,\d+)?\])?")
PACKAGES = ("cdc_consumer", "shared")
ROOT = Path(__file__).resolve().parents[2]

SETTINGS = {
    "spark.app.name": "mysql-cdc parity",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "FATAL",
    # a TCP connection to a Python worker waits 40 ms for a delayed acknowledgement
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.python.worker.reuse": "true",
}


class _Rows(AccumulatorParam[list[int]]):
    """Rows compared and suspects found, as the tasks end."""

    def zero(self, value: list[int]) -> list[int]:
        return [0] * len(value)

    def addInPlace(self, value1: list[int], value2: list[int]) -> list[int]:
        return [one + other for one, other in zip(value1, value2, strict=True)]


class Spark:
    """Runs tasks on the cores of this machine, or on a cluster when spark-submit names one."""

    def __init__(self, cores: int, log: Path) -> None:
        """`cores` of this machine to use, unless spark-submit names a master; `log` gets what Java writes."""
        submitted = "PYSPARK_GATEWAY_PORT" in os.environ
        settings = {**SETTINGS, "spark.executorEnv.PYTHONPATH": os.pathsep.join([str(ROOT), *_python_path()])}
        if not submitted:
            settings["spark.driver.extraJavaOptions"] = " ".join(jvm_flags())
        given = SparkConf(loadDefaults=False).setAll(list(settings.items()))
        with log.open("ab") as file:
            gateway = launch_gateway(given, popen_kwargs={"stdout": file, "stderr": file})
        SparkContext._ensure_initialized(gateway=gateway)
        conf = SparkConf().setAll(list(settings.items()))
        master = conf.get("spark.master") or f"local[{cores}]"
        local = _LOCAL.fullmatch(master)
        if local is not None:
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
            # a Python worker that is killed costs its task one of these tries, not the whole run
            master = f"local[{cores if local[1] in (None, '*') else local[1]},{TRIES}]"
            conf.set("spark.driver.host", "127.0.0.1").set("spark.driver.bindAddress", "127.0.0.1")
        conf.setMaster(master)
        self._context = cast(Any, SparkSession.builder.config(conf=conf).getOrCreate().sparkContext)
        self.master = master
        self.version = str(pyspark.__version__)
        self.java = str(self._context._jvm.java.lang.System.getProperty("java.version"))
        #: tasks that run at the same time
        self.workers = max(int(self._context.defaultParallelism), 1)
        self._progress = self._context.accumulator([0, 0], _Rows())
        if local is None:
            self._ship()

    def _ship(self) -> None:
        """Executors on other machines get the audit's code; pymysql they must have."""
        archive = Path(tempfile.mkdtemp(prefix="mysql-cdc-parity-")) / "audit.zip"
        with zipfile.ZipFile(archive, "w") as file:
            for package in PACKAGES:
                for path in (ROOT / package).rglob("*.py"):
                    file.write(path, path.relative_to(ROOT))
        self._context.addPyFile(str(archive))

    def run(self, tasks: Sequence[Task], setup: Setup, tick: Callable[[int, int], None]) -> list[Outcome]:
        """Run the tasks; `tick` hears four times a second how many rows were compared and suspects found, in all."""
        outcomes: list[Outcome] = []
        failures: list[BaseException] = []
        progress = self._progress

        def collect() -> None:
            try:
                data = self._context.parallelize(tasks, len(tasks))
                outcomes.extend(data.map(partial(_run, setup, progress)).collect())
            except BaseException as error:
                failures.append(error)

        thread = threading.Thread(target=collect, daemon=True)
        thread.start()
        try:
            while thread.is_alive():
                thread.join(0.25)
                tick(*progress.value)
        except BaseException:
            self._context.cancelAllJobs()
            raise
        if failures:
            raise failures[0]
        return outcomes

    def stop(self) -> None:
        self._context.stop()


def _run(setup: Setup, progress: Any, task: Task) -> Outcome:
    outcome = run(task, setup)
    progress.add([outcome.compared.leader_rows, len(outcome.compared.suspects)])
    return outcome


def _python_path() -> list[str]:
    return [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]


def jvm_flags() -> list[str]:
    """The flags of the JVM, with the archive of loaded classes: made when a run first ends, used by all later ones."""
    archive = class_archive()
    if archive is None:
        return list(JVM_FLAGS)
    if archive.exists():
        return [*JVM_FLAGS, f"-XX:SharedArchiveFile={archive}"]
    archive.parent.mkdir(parents=True, exist_ok=True)
    return [*JVM_FLAGS, f"-XX:ArchiveClassesAtExit={archive}"]


def class_archive() -> Path | None:
    """Where the archive of this Spark and this Java is kept; None when this Java makes none."""
    java = _java()
    if java is None or os.environ.get("SPARK_CONF_DIR"):
        return None  # a folder on the class path with files in it makes an archive useless
    told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    name = "".join(character if character.isalnum() else "-" for character in told.partition("\n")[0])
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mysql-cdc"
    return home / f"spark-{pyspark.__version__}-{name}.jsa"


def _java() -> str | None:
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin" / "java") if home else shutil.which("java")
