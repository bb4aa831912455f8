"""Unpacks packages of Debian sid into a folder without touching the system."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

MIRROR = "http://deb.debian.org/debian"
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
#: matches no package
NONE = re.compile(r"(?!)")


class DebianError(Exception):
    """Packages cannot be had; the text is what the tool said."""


def missing_tools() -> list[str]:
    """Return what `unpack` needs and this machine lacks."""
    missing = [tool for tool in ("apt-get", "dpkg") if shutil.which(tool) is None]
    return missing if KEYRING.exists() else [*missing, str(KEYRING)]


def unpack(
    packages: Sequence[str], prefix: Path, work: Path, say: Callable[[str], None], unwanted: re.Pattern[str] = NONE
) -> None:
    """Let apt resolve and download into `work`, knowing nothing of this machine's packages; unpack all into `prefix`.

    Folders that are missing are made. Raises DebianError.
    """
    for folder in (work / "lists/partial", work / "cache/archives/partial", prefix):
        folder.mkdir(parents=True, exist_ok=True)
    (work / "status").touch()
    (work / "sources.list").write_text(f"deb [signed-by={KEYRING}] {_mirror()} sid main\n")
    settings = {
        "Dir::Etc::sourcelist": work / "sources.list",
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::Etc::preferences": "/dev/null",
        "Dir::Etc::preferencesparts": "-",
        "Dir::State::Lists": work / "lists",
        "Dir::State::status": work / "status",
        "Dir::Cache": work / "cache",
        "APT::Install-Recommends": "0",
        "APT::Sandbox::User": "",
        "APT::Update::Error-Mode": "any",
        "Acquire::Retries": "3",
        "Acquire::http::Timeout": "30",
        "Acquire::Languages": "none",
    }
    apt = ["apt-get", "-q", *(word for key, value in settings.items() for word in ("-o", f"{key}={value}"))]
    say("reading Debian's package list")
    _run([*apt, "update"])
    say(f"downloading {', '.join(packages)} from Debian")
    _run([*apt, "install", "-y", "--download-only", *packages])
    say("unpacking")
    for package in sorted((work / "cache/archives").glob("*.deb")):
        if not unwanted.match(package.name):
            _run(["dpkg", "-x", str(package), str(prefix)])


def _mirror() -> str:
    """The Debian mirror this machine already uses, else the usual one."""
    command = ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    mirrors = [line.rstrip("/") for line in result.stdout.splitlines()]
    return next((mirror for mirror in mirrors if mirror.endswith("/debian")), MIRROR)


def _run(command: list[str]) -> None:
    try:
        subprocess.run(command, capture_output=True, text=True, timeout=900, check=True, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.SubprocessError) as error:
        raise DebianError(" ".join(str(getattr(error, "stderr", None) or error).split())[-600:]) from error
