"""A signal at any moment of a program's life ends it with the status it documents, and without a traceback."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import tomli
from fix_replication import Replication
from kit.helpers import LONG, wait_until
from kit.programs import ENVIRONMENT, ROOT, Program

#: of each program: where the installed command enters, exit status of one that was asked to stop, arguments that keep
#: it running
PROGRAMS: dict[str, tuple[str, int, tuple[str, ...]]] = {
    "cdc-producer": ("cdc_producer.__main__:main", 0, ()),
    "cdc-consumer": ("cdc_consumer.__main__:main", 0, ()),
    "cdc-topic": ("shared.start:topic", 130, ("--follow",)),
    "cdc-parity": ("cdc_consumer.parity.__main__:main", 130, ()),
}
#: what a copy leaves when it is stopped or killed has tests of its own
COPY = "cdc_consumer.copy.__main__:main"
#: seconds after the program's first moment at which it gets the signal
DELAYS = (0.0, 0.05, 0.15, 0.35, 0.7, 1.2)
STOPS = (signal.SIGINT, signal.SIGTERM)


@pytest.fixture
def profiles(replication: Replication, tmp_path: Path) -> dict[str, Path]:
    """The profile of each program."""
    replication.play("CREATE TABLE t (a INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    replication.replicate()
    audit = tmp_path / "audit.toml"
    servers = {"leader": replication.leader, "follower": replication.follower}
    tables = [
        f'[{role}]\nhost = "{server.host}"\nport = {server.port}\nuser = "root"' for role, server in servers.items()
    ]
    tables[1] += f'\nsystem_database = "{replication.system_database}"'
    audit.write_text("\n".join([*tables, f'[filters]\ninclude_dbs = ["{replication.database}"]',
        f'[report]\npath = "{tmp_path}"']))  # fmt: skip
    return {
        "cdc-producer": replication.profiles.producer, "cdc-consumer": replication.profiles.consumer,
        "cdc-topic": replication.profiles.consumer, "cdc-parity": audit,
    }  # fmt: skip


def catches(pid: int, number: int) -> bool:
    """Tell whether the process has a handler of its own for the signal."""
    status = Path(f"/proc/{pid}/status").read_text()
    (mask,) = (line.split()[1] for line in status.splitlines() if line.startswith("SigCgt"))
    return bool(int(mask, 16) >> (number - 1) & 1)


def _entering(entry: str) -> str:
    """What the installed command does."""
    module, _, function = entry.partition(":")
    return f"import sys; from {module} import {function}; sys.exit({function}())"


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("number", STOPS, ids=lambda number: number.name)
def test_a_signal_at_any_moment(profiles: dict[str, Path], name: str, number: signal.Signals) -> None:
    entry, status, arguments = PROGRAMS[name]
    for delay in DELAYS:
        program = subprocess.Popen(
            [sys.executable, "-c", _entering(entry), str(profiles[name]), *arguments],
            env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip
        try:
            # SIGTERM, as Python itself catches SIGINT long before it has read a line of ours
            wait_until(lambda pid=program.pid: catches(pid, signal.SIGTERM), "it has begun")
            try:
                said = program.communicate(timeout=delay)[1] if delay else ""
            except subprocess.TimeoutExpired:
                said = ""
            if program.poll() is None:
                os.kill(program.pid, number)
                said = program.communicate(timeout=60)[1]
            assert program.returncode == status, f"after {delay} s: {program.returncode}\n{said}"
            assert "Traceback" not in said, f"after {delay} s:\n{said}"
        finally:
            program.kill()
            program.wait()


@pytest.mark.parametrize("entry", [COPY, *(entry for entry, _, _ in PROGRAMS.values())])
def test_the_handler_comes_before_what_takes_time(entry: str) -> None:
    """All that is read before it is the standard library's, and little."""
    module = entry.partition(":")[0]
    text = f"import sys, {module}; print(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", text], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    ours = {name for name in found.split() if name.partition(".")[0] in ("shared", "cdc_producer", "cdc_consumer")}
    assert ours <= {
        "shared",
        "shared.start",
        module,
        "cdc_producer",
        "cdc_consumer",
        "cdc_consumer.parity",
        "cdc_consumer.copy",
    }
    assert not {"pymysql", "orjson", "argparse", "logging"} & set(found.split())


def test_these_are_the_commands() -> None:
    scripts = tomli.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert {"cdc-copy": COPY, **{name: entry for name, (entry, _, _) in PROGRAMS.items()}} == scripts


@pytest.mark.parametrize("module", ["cdc_producer", "cdc_consumer"])
def test_a_stop_does_not_wait_for_a_login(tmp_path: Path, module: str) -> None:
    """The server accepts, and says nothing: what the program would say when its time is over is not said."""
    profile = tmp_path / "profile.toml"
    with socket.create_server(("127.0.0.1", 0)) as silent:
        database = f'[database]\nhost = "127.0.0.1"\nport = {silent.getsockname()[1]}\nuser = "u"\n'
        name = 'mysql_resource_name = "L"\n' if module == "cdc_producer" else ""
        topic = f'[filters]\ninclude_dbs = ["d"]\n[topic]\nname = "t"\npath = "{tmp_path}"\n'
        profile.write_text(name + database + topic)
        with Program(module, profile) as program:
            link, _ = silent.accept()
            assert program.stop(timeout=60) == 0
            assert "within" not in program.stderr
            link.close()


OWNER = """
import sys, time
from pathlib import Path
from kit.programs import Program
program = Program("cdc_producer", Path(sys.argv[1])).start()
print(program.pid, flush=True)
time.sleep(60)
"""


def test_a_program_ends_with_the_test_that_started_it(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        profile = tmp_path / "profile.toml"
        database = f'[database]\nhost = "127.0.0.1"\nport = {silent.getsockname()[1]}\nuser = "u"\n'
        topic = f'[filters]\ninclude_dbs = ["d"]\n[topic]\nname = "t"\npath = "{tmp_path}"\n'
        profile.write_text(f'mysql_resource_name = "L"\n{database}{topic}')
        environment = {**ENVIRONMENT, "PYTHONPATH": f"{ROOT}:{ROOT}/tests"}
        command = [sys.executable, "-c", OWNER, str(profile)]
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as owner:
            assert owner.stdout is not None
            program = int(owner.stdout.readline())
            silent.settimeout(LONG)
            link, _ = silent.accept()
            owner.kill()
        wait_until(lambda: not Path(f"/proc/{program}").exists(), "it ends")
        link.close()
