"""A copy by accounts that may do what the README grants, and nothing else."""

from __future__ import annotations

import re

from fix_copy import Copies
from kit.programs import ROOT

from docker.local.mysql_servers import Server

OBJECTS = (
    "CREATE TABLE t (id INT PRIMARY KEY, note VARCHAR(20), KEY (note))",
    "CREATE TABLE keyless (n INT)",
    "INSERT INTO t VALUES (1, 'a'), (2, NULL)",
    "INSERT INTO keyless VALUES (1), (1)",
    "CREATE VIEW seen AS SELECT * FROM t",
    "CREATE DEFINER = gone@nowhere FUNCTION one () RETURNS INT DETERMINISTIC RETURN 1",
    "CREATE EVENT cleaning ON SCHEDULE EVERY 1 DAY STARTS '2035-01-01' DO DELETE FROM t",
    "CREATE TRIGGER writes BEFORE INSERT ON t FOR EACH ROW SET NEW.note = UPPER(NEW.note)",
)

#: what the follower's account needs for OBJECTS, and would miss when all rows are copied
EARLY = ("INDEX", "SET_ANY_DEFINER", "ALLOW_NONEXISTENT_DEFINER")


def grants(behind: str) -> list[str]:
    """The GRANT statements of the README's first block of SQL behind these words."""
    block = (ROOT / "README.md").read_text().split(behind, 1)[1].split("```sql\n", 1)[1].split("```", 1)[0]
    found = re.findall(r"^GRANT [^;]+", block, re.MULTILINE)
    assert found, behind
    return found


def test_what_the_readme_grants_is_enough(copies: Copies, leader: Server, database: str) -> None:
    """What one lacks is told before anything is written."""
    leader.execute(f"CREATE DATABASE {database}")
    leader.execute(*OBJECTS, database=database)
    copy = copies()
    user = f"'{database}'@'%'"
    copying = [sql.replace("flvDb", database) for sql in grants("## The initial copy")]
    applying = grants("**2. The follower**")
    *on_leader, purges = [sql.replace("'fluvio'@'%'", user) for sql in copying]
    account = "SET sql_log_bin = 0", f"CREATE USER {user}"
    copy.follower.execute(*account, *(sql.replace("'fluvio'@'%'", user) for sql in applying))
    copy.profile.write_text(copy.profile.read_text().replace('"root"', f'"{database}"'))
    leader.execute(*account, *on_leader)
    try:
        copy.refused("lacks the privilege SYSTEM_VARIABLES_ADMIN", "run on it: GRANT SYSTEM_VARIABLES_ADMIN")
        assert copy.follower.execute(f"SHOW DATABASES LIKE '{database}%'") == []
        copy.follower.execute("SET sql_log_bin = 0", purges)
        off = "SET sql_log_bin = 0"
        for server, missing in (
            (leader, {"LOCK TABLES": f"`{database}`.*", "REPLICATION SLAVE": "*.*"}),
            (copy.follower, dict.fromkeys(EARLY, "*.*")),
        ):
            server.execute(off, *(f"REVOKE {privilege} ON {scope} FROM {user}" for privilege, scope in missing.items()))
            copy.refused(*(f"GRANT {privilege} ON " for privilege in missing))
            assert copy.follower.execute(f"SHOW DATABASES LIKE '{database}%'") == [], "nothing was begun"
            server.execute(off, *(f"GRANT {privilege} ON {scope} TO {user}" for privilege, scope in missing.items()))
        copy.copy()
        copy.follow()
        copy.same_gtids()
    finally:
        leader.execute("SET sql_log_bin = 0", f"DROP USER {user}")
