"""`make demo`: the tutorial as a newcomer sees it, and nothing left behind however it ends."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fix_mysql import Servers
from kit.helpers import wait_until
from kit.programs import ENVIRONMENT, ROOT

from docker.local.demo import Demo
from docker.local.demo_parts import DemoError
from docker.local.processes import Child

#: the tutorial's listing; binlog offsets are the server's, and a uri has the database's real case
EVENTS = """\
{"uri":"flv://mysql-srv1/flvDb","sequence":0,"bn_file":B,"operation":{"Query":"CREATE DATABASE flvDb"}}
{"uri":"flv://mysql-srv1/flvDb","sequence":1,"bn_file":B,"operation":{"Query":"CREATE TABLE pet (name VARCHAR(20), owner VARCHAR(20), species VARCHAR(20), sex CHAR(1), birth DATE)"}}
{"uri":"flv://mysql-srv1/flvDb/pet","sequence":2,"bn_file":B,"columns":["name","owner","species","sex","birth"],"operation":{"Add":{"rows":[{"cols":[{"String":"Puffball"},{"String":"Diane"},{"String":"hamster"},{"String":"f"},{"Date":{"year":1999,"month":3,"day":30}}]}]}}}
{"uri":"flv://mysql-srv1/flvDb/pet","sequence":3,"bn_file":B,"columns":["name","owner","species","sex","birth"],"operation":{"Add":{"rows":[{"cols":[{"String":"Jack"},{"String":"Peter"},{"String":"dog"},{"String":"m"},{"Date":{"year":1999,"month":3,"day":30}}]}]}}}
{"uri":"flv://mysql-srv1/flvDb/pet","sequence":4,"bn_file":B,"columns":["name","owner","species","sex","birth"],"operation":{"Update":{"rows":[{"before_cols":[{"String":"Jack"},{"String":"Peter"},{"String":"dog"},{"String":"m"},{"Date":{"year":1999,"month":3,"day":30}}],"after_cols":[{"String":"Jack"},{"String":"Peter"},{"String":"dog"},{"String":"m"},{"Date":{"year":1989,"month":8,"day":31}}]}]}}}
{"uri":"flv://mysql-srv1/flvDb","sequence":5,"bn_file":B,"operation":{"Query":"ALTER TABLE pet ADD COLUMN last_vaccine DATE"}}
{"uri":"flv://mysql-srv1/flvDb/pet","sequence":6,"bn_file":B,"columns":["name","owner","species","sex","birth","last_vaccine"],"operation":{"Delete":{"rows":[{"cols":[{"String":"Puffball"},{"String":"Diane"},{"String":"hamster"},{"String":"f"},{"Date":{"year":1999,"month":3,"day":30}},"Null"]}]}}}
{"uri":"flv://mysql-srv1/flvDb/pet","sequence":7,"bn_file":B,"columns":["name","owner","species","sex","birth","last_vaccine"],"operation":{"Add":{"rows":[{"cols":[{"String":"Spot"},{"String":"Jane"},{"String":"dog"},{"String":"m"},{"Date":{"year":2010,"month":11,"day":2}},"Null"]}]}}}
{"uri":"flv://mysql-srv1/flvDb/pet","sequence":8,"bn_file":B,"columns":["name","owner","species","sex","birth","last_vaccine"],"operation":{"Update":{"rows":[{"before_cols":[{"String":"Spot"},{"String":"Jane"},{"String":"dog"},{"String":"m"},{"Date":{"year":2010,"month":11,"day":2}},"Null"],"after_cols":[{"String":"Spot"},{"String":"Jane"},{"String":"dog"},{"String":"m"},{"Date":{"year":2010,"month":11,"day":2}},{"Date":{"year":2020,"month":6,"day":10}}]}]}}}
"""
TABLE = """\
+------+-------+---------+-----+------------+--------------+
| name | owner | species | sex | birth      | last_vaccine |
+------+-------+---------+-----+------------+--------------+
| Jack | Peter | dog     | m   | 1989-08-31 | NULL         |
| Spot | Jane  | dog     | m   | 2010-11-02 | 2020-06-10   |
+------+-------+---------+-----+------------+--------------+
"""


class Run:
    """A running demo, its output and its temporary folder."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.temporary = folder / "tmp"
        self.temporary.mkdir(parents=True)
        environment = {**ENVIRONMENT, "TMPDIR": str(self.temporary)}
        self.reports = folder / "reports"
        command = [sys.executable, "-m", "docker.local.demo", f"--reports={self.reports}", *arguments]
        self.child = Child(command, folder / "output", env=environment)

    @property
    def output(self) -> str:
        return self.child.log.read_text()

    def interrupt(self) -> int:
        self.child.send(signal.SIGINT)
        return self.child.wait(90)

    def left_behind(self) -> list[str]:
        """Files, and processes whose command names the folder."""
        found = [str(path) for path in self.temporary.iterdir()]
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                if str(self.temporary) in command:
                    found.append(command)
        return found


@pytest.fixture
def run(tmp_path: Path, servers: Servers) -> Iterator[Run]:
    started = Run(tmp_path)
    yield started
    started.child.kill()


def assert_is_the_tutorial(run: Run) -> None:
    assert run.child.wait(180) == 0, run.output
    lines = [line for line in run.output.splitlines() if line.startswith("{")]
    events = re.sub(r'\{"fileName":"binlog\.\d{6}","offset":\d+\}', "B", "\n".join(lines))
    assert events == EVENTS.rstrip("\n")
    for line in TABLE.splitlines():
        assert f"\n{line}   {line}\n" in run.output
    assert "\nEqual: every row and column, SHOW CREATE TABLE, CHECKSUM TABLE (" in run.output
    if shutil.which("java"):
        assert "\nThe follower equals its leader: 2 tables, 20,002 rows.\n" in run.output
        (report,) = run.reports.glob("*/report.html")
        assert f"  {report}\n" in run.output
    assert "\x1b" not in run.output
    assert run.left_behind() == []


def test_two_people_watch_the_tutorial_at_the_same_time(run: Run, tmp_path: Path) -> None:
    other = Run(tmp_path / "other")
    try:
        assert_is_the_tutorial(run)
        assert_is_the_tutorial(other)
    finally:
        other.child.kill()


@pytest.mark.parametrize(
    "shown", ["leader -> topic", "follower  127", "cdc-producer", "cdc-copy", "INSERT INTO pet", "Equal", "cdc-parity"]
)
def test_ctrl_c_leaves_nothing(run: Run, shown: str) -> None:
    wait_until(lambda: shown in run.output, f"{shown} is shown", pause=0.001)
    assert run.interrupt() == 130, run.output
    assert "Traceback" not in run.output
    assert run.left_behind() == []


def test_it_can_be_left_up_to_play_by_hand(tmp_path: Path, servers: Servers) -> None:
    run = Run(tmp_path, "--keep")
    try:
        shown = wait_until(
            lambda: re.search(r"^  (/.*/leader/mysql) flvDb\n  (/.*/follower/mysql) flvDb\n", run.output, re.M),
            "the demo is over and says how to connect",
        )
        leader, follower = shown.groups()
        insert = "INSERT INTO pet (name, birth) VALUES ('Rex', '2024-02-29')"
        subprocess.run([leader, "flvDb", "-e", insert], check=True, timeout=90)
        wait_until(lambda: '"sequence":9' in run.output, "the event is shown")

        def replayed() -> bool:
            query = "SELECT birth FROM pet WHERE name = 'Rex'"
            return b"2024-02-29" in subprocess.run([follower, "flvDb", "-e", query], capture_output=True).stdout

        wait_until(replayed, "the row is on the follower")
        assert run.interrupt() == 0, run.output
        assert run.left_behind() == []
    finally:
        run.child.kill()


def test_a_program_that_ends_is_quoted(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        demo = Demo(tmp_path, stack)
        program = Child(["sh", "-c", "echo leader 127.0.0.1:1: refused >&2; exit 1"], tmp_path / "log")
        program.wait(10)
        demo.programs["cdc-producer"] = program
        with pytest.raises(DemoError) as caught:
            demo.until(lambda: False, "never")
    said = "cdc-producer ended with status 1\ncdc-producer said:\nleader 127.0.0.1:1: refused"
    assert str(caught.value) == said


def test_makefile_names_each_command() -> None:
    """`make` alone lists what there is."""
    shown = subprocess.run(["make", "-C", str(ROOT), "-s"], capture_output=True, text=True, check=True).stdout
    assert [line.split()[0] for line in shown.splitlines()] == [
        "help", "setup", "demo", "test", "trial", "lint", "type", "fuzz", "bench", "clean",
    ]  # fmt: skip
    assert os.access(ROOT / ".ci/run", os.X_OK)
