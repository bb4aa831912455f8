"""The whole audit as a user runs it, with Spark."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import pyspark
import pytest
from fix_parity import Parity, parity_of, require_java
from fix_replication import Replication
from kit.helpers import wait_until
from kit.programs import ENVIRONMENT, ROOT, run_program

from docker.local.mysql_servers import free_port
from docker.local.processes import Child

#: everything of Spark stays on this machine
SPARK = {**ENVIRONMENT, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
TABLES = [
    "CREATE TABLE pet (id INT PRIMARY KEY, name VARCHAR(20), weight DOUBLE)", "CREATE TABLE log (line VARCHAR(20))",
    "INSERT INTO pet VALUES (1, 'Puffball', 0.1), (2, 'Fluffy', 4.2), (3, 'Claws', 3.9), (4, 'Buffy', 1e-9)",
    "INSERT INTO log VALUES ('a'), ('b'), ('b')",
]  # fmt: skip


def test_from_the_first_row_to_the_repair(replication: Replication, database: str) -> None:
    """Replicate, damage, audit with all reports, repair, and audit once more."""
    replication.play(*TABLES)
    replication.replicate()
    replication.follower.execute(
        "UPDATE pet SET weight = 0.10000000000000002 WHERE id = 1", "DELETE FROM pet WHERE id = 3",
        "INSERT INTO log VALUES ('b')", database=database,
    )  # fmt: skip
    parity = parity_of(replication, [database])
    result = parity.program("--parquet")
    assert result.status == 1, result.err
    assert result.rows("pet") == {("1",): ("changed", "weight"), ("3",): ("missing",)}
    assert [each.copies for each in result.differences if each.table.table == "log"] == [(2, 3)]
    stages = {(each.table.table, each.kind): (each.stage, each.cause) for each in result.differences}
    assert stages == {
        ("pet", "changed"): (
            "applied wrongly, or changed on the follower afterwards",
            "weight is different in the last digits",
        ),
        # a stranger's delete leaves what an insert that was not applied leaves
        ("pet", "missing"): ("published but not applied", ""),
        ("log", "copies"): ("follower written by a stranger", ""),
    }
    assert all(each.evidence.events for each in result.differences)
    assert result.run["run"]["master"].startswith("local[") and result.run["run"]["spark"].startswith("4.")
    assert result.folder is not None
    files = {path.name for path in result.folder.iterdir()}
    assert {"run.json", "differences.jsonl", "schema.json", "report.html", "repair.sql", "undo.sql"} <= files
    assert list((result.folder / "differences.parquet").glob("*.parquet"))
    assert not any(path.stat().st_mode & 0o077 for path in (result.folder, *result.folder.rglob("*")))
    lines = result.out.splitlines()
    assert len(lines) <= 15 and str(result.folder / "report.html") in result.out

    repaired = parity.program("--repair")
    assert repaired.status == 0, repaired.err
    assert repaired.differences == [] and repaired.folder is not None
    before = (repaired.folder / "differences-before-repair.jsonl").read_text().splitlines()
    assert len(before) == 3 and json.loads(before[0])["kind"] in ("changed", "missing", "copies")
    replication.same()


def test_by_spark_submit_on_a_cluster(parity: Parity, tmp_path: Path) -> None:
    require_java()
    for server in (parity.leader, parity.follower):
        server.execute(*TABLES, database=parity.database)
    parity.be_current()
    with ExitStack() as stack:
        submit(parity, start_cluster(tmp_path, stack))


def submit(parity: Parity, master: str) -> None:
    job = ROOT / "cdc_consumer" / "parity" / "job.py"
    # from another folder, and without the path that finds the project by itself
    env = {name: value for name, value in SPARK.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [Path(sys.executable).with_name("spark-submit"), "--master", master, job, parity.profile],
        capture_output=True, text=True, timeout=120, check=False, env=env, cwd=parity.folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "The follower equals its leader" in done.stdout
    (folder,) = parity.folders()
    assert json.loads((folder / "run.json").read_text())["run"]["master"] == master


def start_cluster(folder: Path, stack: ExitStack) -> str:
    """A master and a worker of Spark on this machine; returns the master's address."""
    port = free_port()
    address = f"spark://127.0.0.1:{port}"
    program = str(Path(pyspark.__file__).with_name("bin") / "spark-class")
    deploy = "org.apache.spark.deploy"
    for role, arguments, ready in (
        ("master.Master", ["--host", "127.0.0.1", "--port", str(port)], "I have been elected leader"),
        (
            "worker.Worker",
            ["--cores", "1", "--memory", "1g", "--work-dir", str(folder / "work"), address],
            "registered",
        ),
    ):
        log = folder / f"{role}.log"
        child = Child([program, f"{deploy}.{role}", *arguments, "--webui-port", "0"], log, env=SPARK)
        stack.callback(child.kill)
        wait_until(lambda log=log, ready=ready: ready in log.read_text(), f"{role} is up", timeout=60)
    return address


def test_a_java_that_does_not_start(parity: Parity, tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho too old >&2; exit 1\n")
    java.chmod(0o755)
    for server in (parity.leader, parity.follower):
        server.execute(*TABLES, database=parity.database)
    result = parity.program(env={"JAVA_HOME": str(tmp_path)})
    result.assert_refused(4, "Java did not start", "spark.log says why")
    assert result.folder is not None and "too old" in (result.folder / "spark.log").read_text()


@pytest.mark.parametrize(("arguments", "status"), [(["--help"], 0), (["--nonsense"], 2)])
def test_without_servers(arguments: Sequence[str], status: int, tmp_path: Path) -> None:
    done = run_program("cdc_consumer.parity", tmp_path / "nowhere.toml", *arguments)
    assert done.returncode == status and "usage: cdc-parity" in done.stdout + done.stderr


def test_a_profile_that_is_not_there(tmp_path: Path) -> None:
    done = run_program("cdc_consumer.parity", tmp_path / "nowhere.toml")
    assert done.returncode == 2 and "nowhere.toml" in done.stderr and len(done.stderr.splitlines()) == 1
