"""Where the tools of others come from: Debian and PyPI; they are kept beside the private MySQL."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from docker.local.debian import DebianError, missing_tools, unpack
from docker.local.get_mysql import home, locked

#: PyPI's name and the version that is measured
RELADIFF = "reladiff[mysql]==0.6.0"
#: Debian's; perl comes with them
PERCONA = ("percona-toolkit", "libdbd-mysql-perl")
#: the plugins of its library log in to MySQL
SYSBENCH = ("sysbench", "libmariadb3")

MYDUMPER = ("mydumper", "libmariadb3")


class PeerError(Exception):
    """A peer cannot be had or cannot take part; the text says why."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A program that was unpacked or installed for the benchmark alone."""

    version: str
    #: the words before its arguments, by the program's name
    command: Callable[[str], list[str]]
    env: Mapping[str, str]


def reladiff() -> Tool:
    """In a virtual environment of its own. Raises PeerError."""
    folder = _peers() / "reladiff-0.6.0"
    with _made_once(folder) as work:
        if work is not None:
            _run([sys.executable, "-m", "venv", str(work)])
            _run([str(work / "bin/python"), "-m", "pip", "install", "--quiet", RELADIFF])
    # the scripts of an environment that was moved name the old place; a module does not
    env = {**os.environ, "COLUMNS": "10000"}
    return Tool("reladiff 0.6.0", lambda module: [str(folder / "bin/python"), "-m", module], env)


def percona_toolkit() -> Tool:
    """Debian's packages, run by the perl and the libraries that came with them. Raises PeerError."""
    folder, loader = _of_debian("percona-toolkit", PERCONA)
    libraries = loader.parent
    modules = [
        *libraries.glob("perl5/5.*"), folder / "usr/share/perl5", libraries / "perl-base",
        *libraries.glob("perl/5.??"), *folder.glob("usr/share/perl/5.??"),
    ]  # fmt: skip
    env = {
        **os.environ,
        "PERL5LIB": os.pathsep.join(map(str, modules)),
        **_plugins(loader),
    }
    perl = [str(loader), "--library-path", str(libraries), str(folder / "usr/bin/perl")]

    def command(name: str) -> list[str]:
        return [*perl, str(folder / "usr/bin" / name)]

    said = subprocess.run(
        [*command("pt-table-sync"), "--version"], env=env, capture_output=True, text=True, check=False
    )
    if said.returncode != 0:
        raise PeerError(f"percona-toolkit does not run here: {_line(said.stderr)}")
    return Tool(f"percona-toolkit {said.stdout.split()[-1]}", command, env)


def sysbench() -> Tool:
    """Debian's package; its words are a test's name and options. Raises PeerError."""
    folder, loader = _of_debian("sysbench", SYSBENCH)
    scripts = folder / "usr/share/sysbench"
    env = {**os.environ, "LUA_PATH": f"{scripts}/?.lua", **_plugins(loader)}
    binary = [str(loader), "--library-path", str(loader.parent), str(folder / "usr/bin/sysbench")]
    said = subprocess.run([*binary, "--version"], env=env, capture_output=True, text=True, check=False)
    if said.returncode != 0:
        raise PeerError(f"sysbench does not run here: {_line(said.stderr)}")
    return Tool(said.stdout.strip(), lambda test: [*binary, str(scripts / f"{test}.lua")], env)


def mydumper() -> Tool:
    """Debian's package; its words are "mydumper" or "myloader" and options. Raises PeerError."""
    folder, loader = _of_debian("mydumper", MYDUMPER)
    env = {**os.environ, **_plugins(loader)}

    def command(name: str) -> list[str]:
        return [str(loader), "--library-path", str(loader.parent), str(folder / "usr/bin" / name)]

    said = subprocess.run([*command("mydumper"), "--version"], env=env, capture_output=True, text=True, check=False)
    if said.returncode != 0:
        raise PeerError(f"mydumper does not run here: {_line(said.stderr)}")
    return Tool(" ".join(said.stdout.split(",")[0].split()[:2]), command, env)


def _of_debian(name: str, packages: Sequence[str]) -> tuple[Path, Path]:
    """The folder that holds Debian's packages, and the loader for their libraries. Raises PeerError."""
    folder = _peers() / name
    with _made_once(folder) as work:
        if work is not None:
            _debian(work, packages)
    (loader,) = (folder / "usr/lib").glob("*-linux-gnu*/ld-linux-*.so.*")
    return folder, loader


def _plugins(loader: Path) -> dict[str, str]:
    """Where the client library finds the ways to log in."""
    return {"MARIADB_PLUGIN_DIR": str(loader.parent / "libmariadb3/plugin")}


def _peers() -> Path:
    folder = home() / "peers"
    folder.mkdir(exist_ok=True)
    return folder


@contextmanager
def _made_once(folder: Path) -> Iterator[Path | None]:
    """An empty folder that becomes `folder` when all is well; None when that exists."""
    with locked(folder.parent):
        if folder.exists():
            yield None
            return
        work = Path(tempfile.mkdtemp(prefix="unpack-", dir=folder.parent))
        try:
            yield work
            work.rename(folder)
        finally:
            shutil.rmtree(work, ignore_errors=True)


def _debian(work: Path, packages: Sequence[str]) -> None:
    if missing := missing_tools():
        raise PeerError(f"Debian's packages cannot be unpacked here without {', '.join(missing)}")
    apt = work.with_name(f"{work.name}-apt")
    try:
        unpack(packages, work, apt, lambda text: None)
    except DebianError as error:
        raise PeerError(f"it cannot be had: {_line(str(error))}") from error
    finally:
        shutil.rmtree(apt, ignore_errors=True)


def _run(command: list[str]) -> None:
    try:
        subprocess.run(command, capture_output=True, text=True, timeout=900, check=True, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.SubprocessError) as error:
        raise PeerError(f"it cannot be had: {_line(str(getattr(error, 'stderr', None) or error))}") from error


def _line(text: str) -> str:
    """The end of what a program said, on one line."""
    return " ".join(text.split())[-300:]
