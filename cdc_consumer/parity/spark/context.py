"""The Spark context of an audit: runs tasks and says how far they are."""

from __future__ import annotations

import os
import re
import sys
import tempfile
import threading
import zipfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeVar, cast

import pyspark
from pyspark import SparkConf, SparkContext
from pyspark.accumulators import AccumulatorParam
from pyspark.sql import SparkSession

from cdc_consumer.parity.spark import java

#: what executors on other machines get
PACKAGES = ("cdc_consumer", "shared")
ROOT = Path(__file__).resolve().parents[3]
#: of a task whose worker was lost
TRIES = 3
#: seconds between two looks at how far the tasks are
TICK = 0.1
_LOCAL = re.compile(r"local(?:\[(\*|\d+)(?:,\d+)?\])?")

SETTINGS = {
    "spark.app.name": "mysql-cdc parity",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "FATAL",
    # a TCP connection to a Python worker waits 40 ms for a delayed acknowledgement
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.python.worker.reuse": "true",
    # Hadoop sets the modes of what executors write by itself
    "spark.hadoop.fs.permissions.umask-mode": "077",
}


#: the lines of differences.jsonl, see Difference.record
DIFFERENCES = """database STRING, `table` STRING, kind STRING, key MAP<STRING, STRING>, columns ARRAY<STRING>,
leader MAP<STRING, STRING>, follower MAP<STRING, STRING>, leader_hash STRING, follower_hash STRING,
stage STRING, cause STRING, copies ARRAY<BIGINT>, evidence STRUCT<proof: STRING, before: STRING, fence: STRING,
after: STRING, follower: STRING, rounds: INT, events: ARRAY<STRUCT<sequence: BIGINT, offset: BIGINT,
operation: STRING, position: STRING, gtid: STRING, time: BIGINT>>>"""


class Counted(Protocol):
    """Anything a worker returns: it tells two numbers that are summed up over all of them."""

    @property
    def counts(self) -> tuple[int, int]: ...


Item = TypeVar("Item")
Result = TypeVar("Result", bound=Counted)
#: hears two sums
Tick: TypeAlias = Callable[[int, int], None]


class _Counts(AccumulatorParam[list[int]]):
    """Rows compared and suspects found, as the tasks end."""

    def zero(self, value: list[int]) -> list[int]:
        return [0] * len(value)

    def addInPlace(self, value1: list[int], value2: list[int]) -> list[int]:
        return [one + other for one, other in zip(value1, value2, strict=True)]


class Spark:
    """Runs tasks on the cores of this machine, or on a cluster when spark-submit names one."""

    def __init__(self, cores: int, log: Path) -> None:
        """`cores` of this machine to use, unless spark-submit names a master; `log` gets what Java writes."""
        path = [str(ROOT), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
        settings = {**SETTINGS, "spark.executorEnv.PYTHONPATH": os.pathsep.join(path)}
        self._java = java.start(settings, log)
        SparkContext._ensure_initialized(gateway=self._java.gateway)
        conf = SparkConf().setAll(list(settings.items()))
        master = conf.get("spark.master") or "local"
        local = _LOCAL.fullmatch(master)
        if local is not None:
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
            # a Python worker that is killed costs its task one of these tries, not the whole run
            master = f"local[{cores if local[1] in (None, '*') else local[1]},{TRIES}]"
            conf.set("spark.driver.host", "127.0.0.1").set("spark.driver.bindAddress", "127.0.0.1")
        self._context = cast(Any, SparkContext(conf=conf.setMaster(master)))
        self.master = master
        self.version = str(pyspark.__version__)
        self.java = str(self._context._jvm.java.lang.System.getProperty("java.version"))
        #: tasks that run at the same time
        self.workers = max(int(self._context.defaultParallelism), 1)
        self._counts = self._context.accumulator([0, 0], _Counts())
        self._shipped: tempfile.TemporaryDirectory[str] | None = None
        if local is None:
            self._ship()

    def _ship(self) -> None:
        """Executors on other machines get the audit's code; PyMySQL they must have."""
        # executors fetch it when they start, as late as that may be
        self._shipped = tempfile.TemporaryDirectory(prefix="mysql-cdc-parity-")
        archive = Path(self._shipped.name) / "audit.zip"
        with zipfile.ZipFile(archive, "w") as file:
            for package in PACKAGES:
                for path in (ROOT / package).rglob("*.py"):
                    file.write(path, path.relative_to(ROOT))
        self._context.addPyFile(str(archive))

    def map(self, function: Callable[[Item], Result], items: Sequence[Item], tick: Tick) -> list[Result]:
        """Call a function with each item, in the worker processes; both must be picklable.

        `tick` hears several times a second the sums of what all results so far have counted, those of earlier calls
        included. What it raises cancels the rest.
        """
        results: list[Result] = []
        failures: list[BaseException] = []
        counts = self._counts

        def collect() -> None:
            try:
                data = self._context.parallelize(items, len(items))
                results.extend(data.map(partial(_call, function, counts)).collect())
            except BaseException as error:
                failures.append(error)

        thread = threading.Thread(target=collect, daemon=True)
        thread.start()
        try:
            while thread.is_alive():
                thread.join(TICK)
                tick(*counts.value)
        except BaseException:
            self._context.cancelAllJobs()
            thread.join()
            raise
        if failures:
            raise failures[0]
        return results

    def parquet(self, differences: Path, folder: Path) -> None:
        """Write the lines of differences.jsonl as Parquet; on a cluster both must be on a disk all machines share."""
        lines = SparkSession(self._context).read.schema(DIFFERENCES).json(differences.as_uri())
        lines.coalesce(1).write.parquet(folder.as_uri(), mode="overwrite")

    def stop(self) -> None:
        if self._java.slow_to_end:
            self._context.stop()
        self._java.end()
        if self._shipped is not None:
            self._shipped.cleanup()


def _call(function: Callable[[Item], Result], counts: Any, item: Item) -> Result:
    result = function(item)
    counts.add(list(result.counts))
    return result
