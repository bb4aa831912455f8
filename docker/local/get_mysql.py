"""Finds a MySQL on this machine, or gets one; `python -m docker.local.get_mysql` says which."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from docker.local.debian import DebianError, missing_tools, unpack

ROOT = Path(__file__).resolve().parents[2]
#: what `docker run` uses, here and in compose.yaml
IMAGE = "mysql:8.4.6"
OLDEST = (8, 0)
PACKAGES = ("mysql-server-core", "mysql-client-core")
NOTHING = "no MySQL found: install MySQL 8.0 or newer, or name a mysqld in CDC_MYSQLD, or start Docker"
#: scripts in these packages need a system that owns them; the servers do not need the packages
UNWANTED = re.compile(r"(lib)?perl|udev")


class NoMySQLError(Exception):
    """Neither found nor obtainable; the text says what would help."""


@dataclass(frozen=True, slots=True)
class MySQL:
    """Names the programs of one MySQL, and how to run them."""

    version: str
    #: where it came from, for people
    origin: str
    folders: tuple[str, ...]
    #: the dynamic loader of a private prefix, with its arguments
    loader: tuple[str, ...] = ()
    #: what mysqld needs to find its own files
    options: tuple[str, ...] = ()

    def command(self, program: str) -> list[str]:
        """Return the words that run mysqld, mysql, mysqlbinlog..., to be followed by arguments. Raises NoMySQLError."""
        found = shutil.which(program, path=os.pathsep.join(self.folders))
        if found is None:
            raise NoMySQLError(f"{self.origin} has no {program}")
        return [*self.loader, found]

    def __str__(self) -> str:
        return f"MySQL {self.version}, {self.origin}"


@dataclass(frozen=True, slots=True)
class DockerMySQL:
    """Stands for a MySQL whose servers are containers."""

    image: str = IMAGE

    @property
    def version(self) -> str:
        return self.image.partition(":")[2]

    def __str__(self) -> str:
        return f"MySQL {self.version}, Docker image {self.image}"


def home() -> Path:
    """Return the folder of what was unpacked and initialised once: $CDC_MYSQL_HOME, or .mysql in this project."""
    folder = Path(os.environ.get("CDC_MYSQL_HOME") or ROOT / ".mysql").resolve()
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One process at a time prepares things in `folder`; the lock dies with its holder."""
    with open(folder / ".lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def installed_mysql() -> MySQL | DockerMySQL | None:
    """Return what is here already: a named or installed mysqld, else Docker, else packages unpacked before.

    Raises NoMySQLError when CDC_MYSQLD or CDC_MYSQL_IMAGE names what cannot be used.
    """
    named = os.environ.get("CDC_MYSQLD")
    if named:
        return _installed(named, "named by CDC_MYSQLD")
    image = os.environ.get("CDC_MYSQL_IMAGE")
    if image:
        if not _docker_answers():
            raise NoMySQLError(f"CDC_MYSQL_IMAGE names {image}, and Docker does not answer")
        return DockerMySQL(image)
    on_path = shutil.which("mysqld", path=os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin")))
    if on_path:
        with contextlib.suppress(NoMySQLError):
            return _installed(on_path, on_path)
    if _docker_answers():
        return DockerMySQL()
    prefix = home() / "debian-sid"
    return _in_prefix(prefix) if prefix.exists() else None


@functools.cache
def find_mysql(say: Callable[[str], None] = print) -> MySQL | DockerMySQL:
    """Return what is here already, else Debian's packages, unpacked for this project alone. Raises NoMySQLError."""
    return installed_mysql() or _debian_packages(home(), say)


def _installed(mysqld: str, origin: str) -> MySQL:
    try:
        version = _version([mysqld])
    except (OSError, subprocess.SubprocessError) as error:
        raise NoMySQLError(f"{mysqld} ({origin}) does not run: {error}") from error
    folder = os.path.dirname(os.path.realpath(mysqld))
    client_folder = os.path.join(os.path.dirname(folder), "bin")
    return MySQL(version, origin, (folder, client_folder, *os.environ.get("PATH", "").split(os.pathsep)))


def _version(mysqld: list[str]) -> str:
    """Raises NoMySQLError when it is MariaDB or too old."""
    result = subprocess.run([*mysqld, "--version"], capture_output=True, text=True, timeout=30, check=True)
    said = result.stdout.partition("\n")[0]
    found = re.search(r"Ver ((\d+)\.(\d+)\.\d+)", said)
    if found is None or "MariaDB" in said or (int(found[2]), int(found[3])) < OLDEST:
        raise NoMySQLError(f"mysqld must be MySQL {OLDEST[0]}.{OLDEST[1]} or newer, not: {said}")
    return found[1]


def _docker_answers() -> bool:
    try:
        return subprocess.run(["docker", "info"], capture_output=True, timeout=5, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _debian_packages(folder: Path, say: Callable[[str], None]) -> MySQL:
    prefix = folder / "debian-sid"
    with locked(folder):
        for stale in folder.glob("unpack-*"):
            shutil.rmtree(stale)
        if not prefix.exists():
            work = Path(tempfile.mkdtemp(prefix="unpack-", dir=folder))
            try:
                _unpack(work, say)
                # the name appears only when everything is there
                (work / "prefix").rename(prefix)
            finally:
                shutil.rmtree(work)
    return _in_prefix(prefix)


def _unpack(work: Path, say: Callable[[str], None]) -> None:
    if missing := missing_tools():
        raise NoMySQLError(f"{NOTHING} (Debian's packages cannot be unpacked here without {', '.join(missing)})")
    try:
        unpack(PACKAGES, work / "prefix", work / "apt", say, UNWANTED)
    except DebianError as error:
        raise NoMySQLError(f"{NOTHING} (Debian's packages could not be had: {error})") from error


def _in_prefix(prefix: Path) -> MySQL:
    """Run with the prefix's own loader and libraries: they are newer than this machine's."""
    usr = prefix / "usr"
    (loader,) = usr.glob("lib/*-linux-gnu*/ld-linux-*.so.*")
    libraries = f"{loader.parent}:{usr}/lib/mysql/private"
    command = (str(loader), "--library-path", libraries)
    options = (
        f"--basedir={usr}",
        f"--lc-messages-dir={usr}/share/mysql",
        f"--character-sets-dir={usr}/share/mysql/charsets",
        f"--plugin-dir={usr}/lib/mysql/plugin",
    )
    version = _version([*command, f"{usr}/sbin/mysqld"])
    return MySQL(version, "Debian packages", (f"{usr}/sbin", f"{usr}/bin"), command, options)


if __name__ == "__main__":
    try:
        print(find_mysql())
    except NoMySQLError as error:
        sys.exit(str(error))
