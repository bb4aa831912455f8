"""docs/architecture.md draws the house as it stands."""

from __future__ import annotations

import re

from kit.programs import ROOT

TEXT = (ROOT / "docs/architecture.md").read_text("utf-8")
PACKAGES = ("cdc_producer", "cdc_consumer", "shared", "docker")


def rooms() -> list[str]:
    """The folders of the tree, each with those it stands in."""
    found: list[str] = []
    path: list[str] = []
    for line in TEXT.split("## The rooms")[1].split("##")[0].splitlines():
        if room := re.match(r"    ( *)(\w+)/ +\S", line):
            path = [*path[: len(room[1]) // 2], room[2]]
            found.append("/".join(path))
    return found


def test_every_folder_is_in_the_tree() -> None:
    folders = {
        path.parent.relative_to(ROOT).as_posix() for package in PACKAGES for path in (ROOT / package).rglob("*.py")
    }
    assert sorted(rooms()) == sorted(folders)


def test_every_file_that_is_named_exists() -> None:
    tops = [top for top in ROOT.iterdir() if not top.name.startswith(".")]
    paths = {path.relative_to(ROOT).as_posix() for top in tops for path in (top, *top.rglob("*"))}
    names = re.findall(r"`([\w/.-]+\.(?:py|txt|toml|md)|[\w/]+/)`", TEXT)
    missing = [name for name in names if not any(f"/{path}".endswith(f"/{name.rstrip('/')}") for path in paths)]
    assert len(names) > 80 and not missing


def test_every_file_is_named() -> None:
    named = {name.rpartition("/")[2] for name in re.findall(r"`([\w/.-]+\.py)`", TEXT)}
    files = {path.name for package in PACKAGES for path in (ROOT / package).rglob("*.py")}
    assert {name for name in files if not name.startswith("__")} <= named


def test_a_row_makes_eight_stops_at_most() -> None:
    walks = [part for part in TEXT.split("\n## ") if part.startswith("One ")]
    stops = [re.findall(r"^(\d+)\. `([\w/.]+\.py)`", walk, re.MULTILINE) for walk in walks]
    numbers = [[int(number) for number, _ in walk] for walk in stops]
    assert len(numbers) == 4 and all(
        walk == [*range(1, len(walk) + 1)] and len(walk) in range(4, 9) for walk in numbers
    )
    # by its whole path: the next stop is found without looking for it
    assert all((ROOT / path).is_file() for walk in stops for _, path in walk)
