"""A follower that becomes a clone of its leader by MySQL's CLONE, and what is refused before anything is changed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from fix_copy import Copies, Copying, written
from fix_mysql import StartServer
from kit.helpers import wait_until

from docker.local.mysql_servers import LEADER, PLAIN, MySQLServer, Server
from shared.mysql import MySQLError

CLONE = {"method": "clone"}
PLUGIN = "INSTALL PLUGIN clone SONAME 'mysql_clone.so'"
OBJECTS = (
    "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, n INT, KEY (n))",
    "CREATE TABLE keyless (n INT)",
    "CREATE TRIGGER counts AFTER INSERT ON t FOR EACH ROW INSERT INTO keyless VALUES (NEW.n)",
    "CREATE EVENT cleaning ON SCHEDULE EVERY 1 DAY STARTS '2035-01-01' DO DELETE FROM t",
    "INSERT INTO t (n) VALUES (1), (2), (3)",
)
CHANGES = (
    "INSERT INTO t (n) VALUES (1), (2)",
    "DELETE FROM keyless LIMIT 1",
    "UPDATE t SET n = n + 1 ORDER BY id DESC LIMIT 3",
)
#: MB that a follower takes in a second, so that there is time to kill it
SLOW = 1


@pytest.fixture(params=["gtids", "plain"])
def clone(request: pytest.FixtureRequest, copies: Copies, own_server: StartServer, database: str) -> Copying:
    """A leader of this test's own, with data, and a follower that is to be its clone."""
    plain = request.param == "plain"
    return made(copies, own_server, database, plain=plain)


def made(copies: Copies, own_server: StartServer, database: str, *, plain: bool = False) -> Copying:
    leader = own_server(("--binlog-row-metadata=FULL", *PLAIN) if plain else LEADER, 31)
    forgets = "SET GLOBAL clone_donor_timeout_after_network_failure = 0"
    leader.execute(PLUGIN, forgets, f"CREATE DATABASE {database}", f"USE {database}", *OBJECTS)
    copy = copies(plain=plain, source=leader, copy=CLONE, options=["--event-scheduler=OFF"])
    copy.follower.execute(PLUGIN)
    return copy


@contextmanager
def supervised(server: Server) -> Iterator[None]:
    """Start a server each time that it has ended."""
    assert isinstance(server, MySQLServer)
    ending = threading.Event()

    def watch() -> None:
        while not ending.wait(0.05):
            if not server.running:
                server.start()

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join()


def rests(server: Server) -> bool:
    """Whether the server answers, and is not being cloned."""
    try:
        stages = server.execute("SELECT STATE FROM performance_schema.clone_progress")
    except (MySQLError, OSError):
        return False
    return ("In Progress",) not in stages


def goes_on(copy: Copying, done: list[int]) -> None:
    """The consumer goes on strictly while the leader is written."""
    copy.replication.consumer.start()
    wanted = done[0] + 50
    wait_until(lambda: done[0] > wanted, "the leader is written", alive=[copy.replication.consumer])


def assert_whole(copy: Copying) -> None:
    copy.replication.catch_up(60)
    copy.replication.same()
    copy.same_gtids()
    assert copy.follower.execute(f"SHOW TRIGGERS FROM {copy.database}") == []
    assert "DISABLE ON" in copy.follower.execute(f"SHOW CREATE EVENT {copy.database}.cleaning")[0][3]


def test_a_clone_of_a_leader_that_is_written(clone: Copying) -> None:
    clone.leader.execute("CREATE USER comes_along")
    clone.follower.execute("CREATE DATABASE old", "CREATE TABLE old.t (a INT)", "CREATE USER goes")
    clone.refused("the follower has old already", "--replace")
    with written(clone, CHANGES) as done:
        with supervised(clone.follower):
            clone.copy("--replace")
        goes_on(clone, done)
    assert_whole(clone)
    users = {name for (name,) in clone.follower.execute("SELECT user FROM mysql.user")}
    assert "comes_along" in users and "goes" not in users
    assert clone.follower.execute("SHOW DATABASES LIKE 'old'") == []
    assert clone.replication.consumer.stop() == 0
    clone.refused("has ended already")


#: in the order in which a copy comes to them
POINTS = (
    ("clone.refusals:refuse_clone", "after", 1),
    ("clone.clone:Cloning._look", "after", 2),
    ("clone.clone:Cloning.keep", "before", 1),
    ("state:CopyState.begin", "after", 1),
    ("state:CopyState.ending", "after", 1),
    ("finish:_run", "after", 1),
    ("finish:_run", "after", 3),
    ("state:CopyState.done", "before", 1),
    ("state:CopyState.done", "after", 1),
)
#: the points at which the consumer is started, and what it is told
REFUSED = {2: "is a clone of", 4: "has not ended"}


def test_killed_at_every_point(copies: Copies, own_server: StartServer, database: str) -> None:
    """It goes on where it was; the consumer does not begin before its position is written."""
    clone = made(copies, own_server, database, plain=True)
    with written(clone, CHANGES) as done:
        with supervised(clone.follower):
            for number, point in enumerate(POINTS):
                killed(clone, *point)
                if number in REFUSED:
                    refused = clone.replication.consume()
                    assert refused.returncode == 1 and REFUSED[number] in refused.stderr, refused.stderr
        goes_on(clone, done)
    assert_whole(clone)


def killed(clone: Copying, target: str, when: str, count: int) -> None:
    """Kill a copy there; the follower may be away when it starts, as the one before has let it be cloned."""
    while True:
        wait_until(lambda: rests(clone.follower), "it is there, and nothing is under way")
        try:
            clone.killed(target, when, count)
            return
        except AssertionError as error:
            if "cannot connect to the follower" not in str(error):
                raise


def test_a_follower_that_is_killed_while_it_is_cloned(copies: Copies, own_server: StartServer, database: str) -> None:
    """What it had is gone, which the consumer is told; the copy begins anew by itself."""
    copy = made(copies, own_server, database)
    # files of so few rows would be there before anybody sees it
    copy.leader.execute(f"CREATE TABLE {database}.large (id INT) AUTOEXTEND_SIZE = 512M")
    copy.follower.execute(
        f"SET GLOBAL clone_max_data_bandwidth = {SLOW}", "SET GLOBAL clone_autotune_concurrency = OFF",
        "SET GLOBAL clone_max_concurrency = 1",
    )  # fmt: skip
    copy.program.start()
    copying = "SELECT COUNT(*) FROM performance_schema.clone_progress WHERE STAGE = 'FILE COPY' AND DATA > 0"
    wait_until(lambda: copy.follower.value(copying), "files are copied", alive=[copy.program], pause=0.001)
    assert isinstance(copy.follower, MySQLServer)
    copy.follower.kill()
    copy.program.kill()
    copy.leader.execute(f"DROP TABLE {database}.large")
    copy.follower.start()
    refused = copy.replication.consume()
    assert refused.returncode == 1 and "run cdc-copy again" in refused.stderr, refused.stderr
    with supervised(copy.follower):
        copy.copy()
    copy.leader.execute(f"INSERT INTO {database}.t (n) VALUES (9)")
    copy.follow()
    assert_whole(copy)


def test_what_is_refused(copies: Copies, own_server: StartServer, database: str) -> None:
    """Each before anything of the follower is changed."""
    copy = made(copies, own_server, database)
    leader, follower = copy.leader, copy.follower
    follower.execute("CREATE DATABASE old", "CREATE TABLE old.kept (a INT)")

    def refused(*words: str) -> None:
        copy.refused(*words, arguments=("--replace",))
        assert follower.execute("SHOW TABLES FROM old") == [("kept",)]

    for server, role in ((leader, "leader"), (follower, "follower")):
        server.execute("UNINSTALL PLUGIN clone")
        refused(f"the {role} has no plugin", "INSTALL PLUGIN", 'method = "rows"')
        server.execute(PLUGIN)
    leader.execute("CREATE DATABASE beside")
    refused("database beside", "exclude_dbs = []")
    leader.execute("DROP DATABASE beside", f"CREATE DATABASE {copy.replication.system_database}")
    refused(f"a database {copy.replication.system_database}", "is a follower itself")
    leader.execute(
        f"DROP DATABASE {copy.replication.system_database}", f"CREATE TABLE {database}.m (a INT) ENGINE=MyISAM"
    )
    refused(f"{database}.m", "MyISAM")
    leader.execute(f"DROP TABLE {database}.m")
    follower.execute("SET PERSIST_ONLY event_scheduler = ON")
    refused(f"event {database}.cleaning", "SET PERSIST event_scheduler = OFF")
    follower.execute("SET PERSIST event_scheduler = OFF", "SET GLOBAL character_set_server = latin1")
    refused("character_set_server of the follower is latin1", "utf8mb4")
    follower.execute("SET GLOBAL character_set_server = utf8mb4", "SET GLOBAL collation_server = DEFAULT")
    for user in ("owner", "owner_there"):
        follower.execute(f"CREATE USER {user}", f"GRANT ALL ON *.* TO {user}")
    text = copy.profile.read_text()
    copy.profile.write_text(text.replace('user = "root"', 'user = "owner"').replace('"owner"', '"root"', 1))
    refused("user owner of [follower] cannot go on")
    leader.execute("CREATE USER owner", "GRANT SELECT ON *.* TO owner")
    refused("user owner of [follower] cannot go on", "SESSION_VARIABLES_ADMIN")
    leader.execute("GRANT ALL ON *.* TO owner", "REVOKE BACKUP_ADMIN ON *.* FROM owner")
    copy.profile.write_text(text.replace('"root"', '"owner"'))
    refused("nothing on the follower was changed", "BACKUP_ADMIN")
