"""No product file is too long to be read at one sitting."""

from __future__ import annotations

from kit.programs import ROOT

PACKAGES = ("cdc_producer", "cdc_consumer", "shared", "docker")
LONGEST = 300
#: files that are longer: they may only become shorter, and then leave this list
LONGER: dict[str, int] = {}


def test_no_file_is_long() -> None:
    files = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    lines = {path.relative_to(ROOT).as_posix(): len(path.read_text("utf-8").splitlines()) for path in files}
    assert len(lines) > 150 and not {name: n for name, n in lines.items() if n > LONGER.get(name, LONGEST)}
