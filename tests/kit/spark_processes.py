"""The processes of Spark that belong to a running audit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from kit.programs import Program


def workers(program: Program) -> list[int]:
    """Python processes of Spark that belong to a running audit: not the process that forks them."""
    children = _children()
    daemons = [pid for pid in _descendants(children, program.pid) if b"pyspark.daemon" in _command(pid)]
    return [pid for pid in daemons if not children.get(pid) and children]


def _children() -> Mapping[int, list[int]]:
    found: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, IndexError, ValueError):
            continue
        found.setdefault(parent, []).append(int(entry.name))
    return found


def _descendants(children: Mapping[int, list[int]], pid: int) -> Iterator[int]:
    for child in children.get(pid, ()):
        yield child
        yield from _descendants(children, child)


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def megabytes(pid: int) -> int:
    """Of memory a process has to itself, about; 0 when it is gone."""
    try:
        (line,) = (line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS"))
    except (OSError, ValueError):
        return 0
    return int(line.split()[1]) // 1024
