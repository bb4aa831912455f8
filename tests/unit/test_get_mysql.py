"""Which MySQL is taken, and what is said when there is none."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from docker.local import debian
from docker.local.get_mysql import DockerMySQL, MySQL, NoMySQLError, find_mysql, installed_mysql

SPEAKS = {
    "mysql": "mysqld  Ver 8.0.36-0ubuntu0.22.04.1 for Linux on x86_64 ((Ubuntu))",
    "new": "/usr/sbin/mysqld  Ver 9.7.4-2 for Linux on x86_64 ((Debian))",
    "mariadb": "mysqld  Ver 10.11.6-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64 (Debian 12)",
    "old": "mysqld  Ver 5.7.44 for Linux on x86_64 (MySQL Community Server (GPL))",
}
MakeProgram = Callable[[str, str], Path]


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeProgram:
    """Makes programs on an otherwise empty PATH; nothing else is installed, and nothing was unpacked."""
    folder = tmp_path / "sbin"
    folder.mkdir()
    real = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name, path=None: real(name, path=path and str(folder)))
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("CDC_MYSQL_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("CDC_MYSQLD", raising=False)
    monkeypatch.delenv("CDC_MYSQL_IMAGE", raising=False)
    find_mysql.cache_clear()

    def make(name: str, script: str) -> Path:
        path = folder / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return path

    return make


def test_a_mysqld_on_path_comes_before_docker(program: MakeProgram) -> None:
    path = program("mysqld", f"echo '{SPEAKS['mysql']}'")
    program("docker", "exit 0")
    found = installed_mysql()
    assert isinstance(found, MySQL)
    assert (found.version, found.command("mysqld")) == ("8.0.36", [str(path)])
    assert str(found) == f"MySQL 8.0.36, {path}"


def test_a_named_image_comes_before_what_is_installed(program: MakeProgram, monkeypatch: pytest.MonkeyPatch) -> None:
    program("mysqld", f"echo '{SPEAKS['mysql']}'")
    monkeypatch.setenv("CDC_MYSQL_IMAGE", "mysql:8.4")
    with pytest.raises(NoMySQLError, match=r"mysql:8\.4, and Docker does not answer"):
        installed_mysql()
    program("docker", "exit 0")
    assert installed_mysql() == DockerMySQL("mysql:8.4")


def test_the_named_mysqld_comes_first(program: MakeProgram, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program("mysqld", f"echo '{SPEAKS['mysql']}'")
    named = program("mysqld-new", f"echo '{SPEAKS['new']}'")
    (tmp_path / "elsewhere").mkdir()
    named = named.rename(tmp_path / "elsewhere" / "mysqld")
    monkeypatch.setenv("CDC_MYSQLD", str(named))
    found = installed_mysql()
    assert found is not None
    assert str(found) == "MySQL 9.7.4, named by CDC_MYSQLD"


@pytest.mark.parametrize("who", ["mariadb", "old"])
def test_what_is_not_mysql_is_passed_over_on_path_and_refused_by_name(
    program: MakeProgram, monkeypatch: pytest.MonkeyPatch, who: str
) -> None:
    path = program("mysqld", f"echo '{SPEAKS[who]}'")
    assert installed_mysql() is None
    program("docker", "exit 0")
    assert installed_mysql() == DockerMySQL()
    monkeypatch.setenv("CDC_MYSQLD", str(path))
    with pytest.raises(NoMySQLError, match=r"must be MySQL 8\.0 or newer, not: mysqld  Ver"):
        installed_mysql()


def test_a_named_program_that_does_not_run_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDC_MYSQLD", "/no/mysqld")
    with pytest.raises(NoMySQLError, match=r"/no/mysqld \(named by CDC_MYSQLD\) does not run"):
        installed_mysql()


def test_a_docker_client_without_an_engine_is_no_docker(program: MakeProgram) -> None:
    program("docker", "echo Cannot connect to the Docker daemon >&2; exit 1")
    assert installed_mysql() is None


def test_without_anything_one_sentence_says_what_helps(program: MakeProgram, tmp_path: Path) -> None:
    with pytest.raises(NoMySQLError, match="name a mysqld in CDC_MYSQLD, or start Docker"):
        find_mysql()
    assert [path.name for path in (tmp_path / "home").iterdir()] == [".lock"]


def test_a_failed_download_leaves_nothing_and_says_what_apt_said(
    program: MakeProgram, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(debian, "KEYRING", tmp_path)
    program("apt-get", "echo E: no route to the mirror >&2; exit 100")
    program("dpkg", "exit 0")
    (tmp_path / "home").mkdir()
    (tmp_path / "home/unpack-died-here").mkdir()
    with pytest.raises(NoMySQLError, match=r"no MySQL found: install .* no route to the mirror"):
        find_mysql(lambda text: None)
    assert [path.name for path in (tmp_path / "home").iterdir()] == [".lock"]
