"""What a copy tells: its page, its progress, and the audit that proves it."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

from fix_copy import MODULE, Copies, Copying
from fix_parity import require_java
from kit.helpers import wait_until
from kit.programs import ENVIRONMENT

from docker.local.mysql_servers import Server

#: a name that must stay text
HOSTILE = "<script>alert(1)</script>"


def fill(leader: Server, database: str, rows: int = 400) -> None:
    leader.execute(
        f"CREATE DATABASE {database}", f"USE {database}", "CREATE TABLE t (id INT PRIMARY KEY, note VARCHAR(20), KEY (note))",
        f"CREATE TABLE `{HOSTILE}` (id INT PRIMARY KEY)", f"INSERT INTO `{HOSTILE}` VALUES (1), (2)",
        f"INSERT INTO t VALUES {', '.join(f'({number}, NULL)' for number in range(rows))}", "ANALYZE TABLE t",
        "CREATE TRIGGER writes BEFORE INSERT ON t FOR EACH ROW SET NEW.note = 'x'",
    )  # fmt: skip


def the_page(copy: Copying) -> tuple[Path, str]:
    (path,) = (copy.replication.folder / "reports").glob("*/copy.html")
    assert not any(each.stat().st_mode & 0o077 for each in (path, path.parent)), "others may read it"
    return path, path.read_text()


def test_the_page_tells_of_all_runs(copies: Copies, leader: Server, database: str) -> None:
    fill(leader, database)
    copy = copies()
    copy.killed("moment:executed", "before", 1)
    leader.execute(f"ALTER TABLE {database}.t ADD COLUMN more INT")
    copy.copy()
    _, page = the_page(copy)
    assert f"{database}.t</th>" in page and ">400<" in page and "<script" not in page and "&lt;script&gt;" in page
    assert "1 time" in page, "t was copied once more"
    assert page.count("an attempt begins") == 2
    for words in ("tables", "rows", "window", "ending", "done"):
        assert re.search(f'scope="row">{words}<', page), words
    assert f"Trigger {database}.writes is not on the follower" in page and "not audited" in page
    position = copy.replication.follower.execute(
        f"SELECT CONCAT(leader_file, ':', leader_offset), sequence FROM {copy.replication.system_database}.position"
    )[0]
    assert all(f"<code>{part}</code>" in page for part in position)
    copy.follow()


def test_the_audit_proves_it(copies: Copies, leader: Server, database: str) -> None:
    """No consumer of its own runs; what the leader has written since is no difference, nor what is not there yet."""
    require_java()
    fill(leader, database)
    copy = copies(copy={"range_rows": 100, "audit": True}, filters={"include_dbs": [database, f"{database}_later"]})
    copy.killed("report.closing:_note", "before", 1)
    leader.execute(f"UPDATE {database}.t SET note = 'later'")
    result = copy.run()
    assert (
        result.returncode == 0
        and "the audit proves it: The follower equals its leader: 2 tables, 402 rows" in result.stderr
    )
    path, page = the_page(copy)
    assert path.with_name("report.html").exists() and "The follower equals its leader" in page
    copy.refused("has ended already")
    copy.follow()


def test_an_audit_that_is_not_installed_is_told_at_the_start(copies: Copies, leader: Server, database: str) -> None:
    fill(leader, database)
    copy = copies(copy={"audit": True})
    without = "import sys; sys.modules['pyspark'] = None; from cdc_consumer.copy.cli import main; sys.exit(main(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", without, str(copy.profile)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=ENVIRONMENT,
    )
    assert done.returncode == 1 and "pip install 'mysql-cdc[parity]'" in done.stderr and "Traceback" not in done.stderr
    assert copy.follower.execute(f"SHOW DATABASES LIKE '{database}%'") == []


def test_a_terminal_sees_it_move(copies: Copies, leader: Server, database: str) -> None:
    fill(leader, database)
    copy = copies(limits={"rows_per_second": 200, "connections": 1})
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", MODULE, str(copy.profile)], stderr=theirs, env={**ENVIRONMENT, "COLUMNS": "300"}
    )
    os.close(theirs)
    seen = b""

    def moves() -> bool:
        nonlocal seen
        seen += os.read(ours, 65536)
        return (
            re.search(rb"\r\x1b\[K\[#+\.+\] [\d,]+ of about \d+ rows, \d+ rows/s, about [\d.]+ s left; left: ", seen)
            is not None
        )

    try:
        wait_until(moves, "a line with rows, rate, time and tables")
        process.wait(60)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
