"""The command cdc-topic."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.programs import ENVIRONMENT
from kit.topic import sealed

from shared.topic.cli import cut, main
from shared.topic.embedded import EmbeddedWriter
from shared.topic.record import Sealed, seal

PLACE = '"bn_file":{"fileName":"binlog.000003","offset":233}'
REST = ',"database":"d","session":{"sql_mode":0},"transaction":{"begin":1,"event":0,"time":2,"clock":[0,1],"end":9}}'
#: as the original demo printed them
QUERY = f'{{"uri":"flv://mysql-srv1/flvDb","sequence":0,{PLACE},"operation":{{"Query":"CREATE DATABASE flvDb"}}}}'
TRICKY = (
    f'{{"uri":"flv://s/d","sequence":1,{PLACE},"operation":'
    r'{"Query":"INSERT INTO t VALUES ('
    r"'ä},{ \"operation\":\"Heartbeat\" \\')"
    r'"}}'
)
ROWS = (
    f'{{"uri":"flv://s/d/t","sequence":2,{PLACE},"columns":["operation","b"],"operation":{{"Add":{{"rows":[{{"cols":'
    '["Null",{"Double":-1.5e300},{"Json":{"operation":"Heartbeat"}}]}]}}}'
)
HEARTBEAT = f'{{"uri":"flv://s","sequence":2,{PLACE},"operation":"Heartbeat"}}'
DEMO = [QUERY, TRICKY, ROWS, HEARTBEAT]
RECORDS = [line[:-1] + REST for line in DEMO]


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    """A consumer profile of a topic with four records, the last of them a heartbeat."""
    with closing(EmbeddedWriter(tmp_path / "t.topic")) as writer:
        writer.append(sealed([record.encode() for record in RECORDS]))
    path = tmp_path / "profile.toml"
    path.write_text(
        f'[database]\nuser = "u"\n[filters]\ninclude_dbs = ["d"]\n[topic]\nname = "t"\npath = "{tmp_path}"\n'
    )
    return path


@pytest.mark.parametrize(
    "keys", ['mysql_resource_name = "x"\n[database]\nuser = "u"', '[leader]\nuser = "u"\n[follower]\nuser = "u"']
)
def test_the_profile_of_any_program_names_a_topic(profile: Path, capfd: pytest.CaptureFixture[str], keys: str) -> None:
    profile.write_text(profile.read_text().replace('[database]\nuser = "u"', keys))
    assert main([str(profile)]) == 0
    assert capfd.readouterr().out.splitlines() == RECORDS[:3]


def command(*arguments: object) -> list[str]:
    text = "import sys; from shared.topic.cli import main; sys.exit(main())"
    return [sys.executable, "-c", text, *map(str, arguments)]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], RECORDS[:3]),
        (["-B"], RECORDS[:3]),
        (["--all"], RECORDS),
        (["--cut"], DEMO[:3]),
        (["--cut", "--all"], DEMO),
        (["--from", "1"], RECORDS[1:3]),
        (["--from", "4"], []),
        (["--tail", "1"], RECORDS[2:3]),
        (["--tail", "2"], RECORDS[1:3]),
        (["--tail", "99"], RECORDS[:3]),
        (["--tail", "2", "--all"], RECORDS[2:]),
        (["--tail", "99", "--all"], RECORDS),
        (["--tail", "0"], []),
    ],
    ids=" ".join,
)
def test_what_is_printed(
    profile: Path, capfd: pytest.CaptureFixture[str], options: list[str], expected: list[str]
) -> None:
    assert main([str(profile), *options]) == 0
    assert capfd.readouterr() == ("".join(line + "\n" for line in expected), "")


def test_a_producer_profile_will_do(profile: Path, capfd: pytest.CaptureFixture[str]) -> None:
    profile.write_text('mysql_resource_name = "mysql-srv1"\n' + profile.read_text())
    assert main([str(profile), "--tail", "4"]) == 0
    assert len(capfd.readouterr().out.splitlines()) == 3


@pytest.mark.parametrize(
    ("change", "status", "message"),
    [
        (('name = "t"', 'name = "nothing"'), 1, "nothing.topic does not exist; start its producer first"),
        (('name = "t"', 'naem = "t"'), 2, "unknown key topic.naem"),
        (("[topic]", "[topics]"), 2, "missing table [topic]"),
        (("[database]", "[database"), 2, "not valid TOML"),
    ],
)
def test_errors_are_one_line(
    profile: Path, capfd: pytest.CaptureFixture[str], change: tuple[str, str], status: int, message: str
) -> None:
    profile.write_text(profile.read_text().replace(*change))
    assert main([str(profile)]) == status
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith("cdc-topic: ") and err.count("\n") == 1 and message in err


def test_a_beginning_after_the_end(profile: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for options in ([], ["--follow"]):
        assert main([str(profile), "--from", "99", *options]) == 1
        assert capfd.readouterr() == ("", "cdc-topic: the topic ends at offset 4, and offset 99 is asked for\n")


def test_a_record_that_was_altered(profile: Path, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """What stands before it is printed."""
    value, key = seal(RECORDS[0].encode())
    with closing(EmbeddedWriter(tmp_path / "t.topic")) as writer:
        writer.append([seal(b"{}"), Sealed(value.replace(b"CREATE", b"cREATE"), key), seal(b"{}")])
    assert main([str(profile), "--all"]) == 1
    out, err = capfd.readouterr()
    assert out == "".join(line + "\n" for line in [*RECORDS, "{}"])
    assert err.startswith(
        f"cdc-topic: topic {tmp_path / 't.topic'} offset 5 does not match its checksum: it was altered"
    )


def test_retention_moves_the_beginning(profile: Path, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with closing(EmbeddedWriter(tmp_path / "t.topic", retention_days=1e-9)) as writer:
        writer.append(sealed([RECORDS[0].encode()]))
    assert main([str(profile), "--all"]) == 0
    assert capfd.readouterr().out == RECORDS[0] + "\n"
    assert main([str(profile), "--from", "1"]) == 1
    assert "no longer holds offset 1" in capfd.readouterr().err


@pytest.mark.parametrize("options", [["--from", "-1"], ["--tail", "x"], ["-B", "--tail", "1"], ["--unknown"]])
def test_usage(profile: Path, options: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main([str(profile), *options])
    assert caught.value.code == 2
    assert "usage: cdc-topic" in capfd.readouterr().err


def test_help_teaches(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--help"])
    assert caught.value.code == 0
    out = capfd.readouterr().out
    assert all(word in out for word in ("--follow", "--cut", "examples:", "exit status:", "sequence"))


def test_follow_waits_until_ctrl_c(profile: Path, tmp_path: Path) -> None:
    process = subprocess.Popen(
        command(profile, "--follow", "--tail", "4"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    )
    with process:
        assert process.stdout is not None and process.stderr is not None
        assert [process.stdout.readline() for _ in range(3)] == [line + "\n" for line in RECORDS[:3]]
        with closing(EmbeddedWriter(tmp_path / "t.topic")) as writer:
            writer.append(sealed([b'{"new":1}']))
        assert process.stdout.readline() == '{"new":1}\n'
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 130
        assert process.stderr.read() == ""


def test_a_reader_that_has_seen_enough(profile: Path, tmp_path: Path) -> None:
    with closing(EmbeddedWriter(tmp_path / "t.topic")) as writer:
        writer.append(sealed([QUERY.encode()] * 20_000))
    process = subprocess.Popen(
        command(profile), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT
    )
    with process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline() == RECORDS[0] + "\n"
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(10) == 0


@pytest.mark.parametrize(
    "value", [b"", b"x", b"{", b"[]", b"7", b'{"a":1}', b'{"operation":', b"{}", b"\xff{", b'{"a"']
)
def test_what_has_no_operation_is_left_whole(value: bytes) -> None:
    assert cut(value) == value


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text() | st.just("operation"), inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(st.text(max_size=5).filter(lambda key: key != "operation"), values, max_size=4)


@given(before=objects, operation=values, after=objects)
def test_a_cut_ends_behind_the_operation(
    before: dict[str, object], operation: object, after: dict[str, object]
) -> None:
    def write(fields: dict[str, object]) -> bytes:
        return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")

    kept = {**before, "operation": operation}
    added = {key: value for key, value in after.items() if key not in kept}
    assert cut(write({**kept, **added})) == write(kept)
