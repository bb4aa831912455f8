"""One home for each class: who reads a name knows what it is, wherever it stands."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from kit.programs import ROOT

PACKAGES = ("cdc_producer", "cdc_consumer", "shared")
#: what each program has one of, under the same name because it is the same thing; and how many there are
TWINS = {"Attempt": 2, "Progress": 3}


def classes(path: Path) -> Iterator[str]:
    """Names of the classes and type aliases of a module, not those that only it can see."""
    for node in ast.parse(path.read_text(), str(path)).body:
        if isinstance(node, ast.ClassDef):
            yield node.name
        elif isinstance(node, (ast.Assign, ast.AnnAssign)) and "TypeVar(" not in ast.unparse(node):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                # an alias is written like a class: Places, but not PLACES or T
                if isinstance(target, ast.Name) and target.id[:1].isupper() and not target.id.isupper():
                    yield target.id


def test_a_class_name_has_one_home() -> None:
    homes: dict[str, list[str]] = defaultdict(list)
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            for name in classes(path):
                if not name.startswith("_"):
                    homes[name].append(path.relative_to(ROOT).as_posix())
    several = {name: files for name, files in homes.items() if len(files) > 1}
    assert {name: len(files) for name, files in several.items()} == TWINS, several
