"""What once went wrong, what is invented, and whether the trial would see it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from cdc_consumer.profile import Apply
from trial.cases import Case, equal_cases, load_cases, together
from trial.contents import contents
from trial.invent.inventor import invent
from trial.invent.settings import VALUES
from trial.limits import is_fault
from trial.script import FIRST, Step
from trial.trial import SYSTEM_DATABASE, Trial
from trial.verdict import AS_NATIVE, EQUAL, judge

CASES = load_cases()
TOGETHER = equal_cases(CASES)
ALONE = [
    pytest.param(case, id=case.name, marks=[pytest.mark.xfail(strict=True)] if case.is_red else [])
    for case in CASES
    if case not in TOGETHER
]
#: how the consumer changes the follower; every invented script meets one of them
APPLY = (Apply(workers=1), Apply("sql"), Apply(workers=4), Apply(workers=4, order="independent"))
#: invented scripts and their statements
SEED, SCRIPTS, STATEMENTS = 20, len(APPLY), 40


@pytest.mark.parametrize("rows", ["auto", "sql"])
def test_what_arrives(trial: Trial, rows: str, tmp_path: Path) -> None:
    trial = Trial(trial.servers, tmp_path / "programs", Apply(rows))
    tried = trial.run(together(TOGETHER))
    if tried.verdict.kind != EQUAL:
        wrong = [
            f"{case.name}: {found}" for case in TOGETHER if not case.met_by(found := trial.run(case.steps).verdict)
        ]
        pytest.fail("\n".join([str(tried.verdict), *wrong]))
    assert not tried.refused, [error for error in tried.played.errors if error]


@pytest.mark.parametrize("case", ALONE)
def test_a_case(trial: Trial, case: Case) -> None:
    tried = trial.run(case.steps)
    assert case.met_by(tried.verdict), f"{tried.verdict}\n{tried.stop()}"
    assert not is_fault(tried.verdict), f"not in Limits: {tried.verdict}"


@pytest.mark.parametrize("seed", range(SEED, SEED + SCRIPTS))
def test_what_is_invented(trial: Trial, seed: int, tmp_path: Path) -> None:
    tried = Trial(trial.servers, tmp_path / "programs", APPLY[seed % len(APPLY)]).run(
        invent(random.Random(seed), STATEMENTS)
    )
    assert not is_fault(tried.verdict), f"make trial SECONDS=1 SEED={seed}\n{tried.verdict}"
    assert tried.refused < len(tried.steps) / 2


def test_every_setting_of_a_session(trial: Trial) -> None:
    """Definitions and rows made under values of each; what is invented has the other values too."""
    steps = []
    for number, (name, value) in enumerate((name, value) for name, values in VALUES for value in values[:4][::-2]):
        session = f"{name} {number}"
        statements = (
            f"SET {name} = {value}",
            f"CREATE TABLE t{number} (id INT AUTO_INCREMENT PRIMARY KEY, ts TIMESTAMP DEFAULT CURRENT_TIMESTAMP,"
            " c VARCHAR(9) DEFAULT 'x', d REAL, g VARCHAR(20) AS (DATE_FORMAT(ts, '%d %H')) STORED)",
            f"INSERT INTO t{number} (c, d) VALUES ('a', 1 / 3), ('b', 0.1)",
            f"CREATE VIEW v{number} AS SELECT 'é' || 'b' AS a, ts FROM t{number}",
            f"ALTER TABLE t{number} ADD e DATE DEFAULT '2024-01-01' AFTER id",
            "COMMIT",
        )
        steps += [Step(session, statement.encode()) for statement in statements]
    tried = trial.run(steps)
    assert tried.verdict.kind in (EQUAL, AS_NATIVE), f"{tried.verdict}\n{tried.stop()}"
    refused = {step.session: error for step, error in zip(steps, tried.played.errors, strict=True) if error}
    assert len(refused) < 5, refused


SCHEMA = """SET sql_mode = '' ;;
CREATE TABLE t (id INT PRIMARY KEY, f FLOAT, d DOUBLE, c VARCHAR(9) COLLATE utf8mb4_general_ci, b BINARY(3),
    e ENUM('', 'a'), j JSON, ts TIMESTAMP(6) NULL, n DECIMAL(5,2)) ;;
INSERT INTO t VALUES (1, 16777216, 0, 'a', 'x', 0, JSON_ARRAY(CAST(1 AS UNSIGNED)), '2020-01-01', 1.10) ;;
CREATE VIEW v AS SELECT id FROM t ;; CREATE FUNCTION f() RETURNS INT DETERMINISTIC RETURN 1 ;;
CREATE EVENT e ON SCHEDULE EVERY 1 YEAR STARTS '2030-01-01' DISABLE DO SELECT 1
"""
#: what is done to a follower, and the kind of the piece that then differs
PLANTED = {
    "UPDATE t SET f = 16777218": "rows",
    "UPDATE t SET d = -0e0": "rows",
    "UPDATE t SET c = 'A'": "rows",
    "UPDATE t SET c = 'a '": "rows",
    "UPDATE t SET b = 'X'": "rows",
    "UPDATE t SET e = 1": "rows",
    "UPDATE t SET n = NULL": "rows",
    "UPDATE t SET ts = '2020-01-01 00:00:00.000001'": "rows",
    "UPDATE t SET j = NULL ;; UPDATE t SET j = JSON_ARRAY(1)": "documents",
    "INSERT INTO t SELECT 2, f, d, c, b, e, j, ts, n FROM t": "rows",
    "DELETE FROM t": "rows",
    "ALTER TABLE t COMMENT 'x'": "table",
    "ALTER TABLE t ALTER n SET INVISIBLE": "table",
    "ALTER SQL SECURITY INVOKER VIEW v AS SELECT id FROM t": "view",
    "DROP VIEW v": "view",
    "ALTER FUNCTION f COMMENT 'x'": "routine",
    "ALTER EVENT e COMMENT 'x'": "event",
    "ALTER EVENT e ENABLE": "event state",
    "ALTER DATABASE CHARACTER SET latin1": "database",
    "CREATE TABLE extra (a INT)": "table",
}


def test_every_change_of_a_follower_is_seen(trial: Trial) -> None:
    tried = trial.run([Step(FIRST, statement.strip().encode()) for statement in SCHEMA.split(";;")])
    assert not tried.refused, tried.played.errors
    servers = trial.servers
    leader, native = contents(servers.leader), contents(servers.native)
    before = contents(servers.follower, without=[SYSTEM_DATABASE])
    for statement, kind in PLANTED.items():
        servers.follower.execute(*statement.split(";;"), database="test")
        after = contents(servers.follower, without=[SYSTEM_DATABASE])
        changed = {item.kind for item in {**before, **after} if before.get(item) != after.get(item)}
        assert kind in changed, statement
        before = after
    verdict = judge(leader, after, native, (), "")
    assert verdict.is_silent
    assert judge(leader, leader, native, (), "").kind == EQUAL


def test_a_place_is_named(trial: Trial) -> None:
    """The transaction and the statement of a stop."""
    (case,) = (case for case in CASES if case.name == "xa")
    place = trial.run(case.steps).stop()
    assert place is not None
    assert place.gtid.startswith(trial.servers.leader.value("SELECT @@server_uuid"))
    assert place.statement == "XA START 'x'; INSERT INTO t VALUES (1); XA END 'x'; XA PREPARE 'x'"
