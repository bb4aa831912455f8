"""Who may import what: two programs that never meet, and foreign libraries at the edge only."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import tomli
from kit.programs import ROOT

PACKAGES = ("cdc_producer", "cdc_consumer", "shared")
FILES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))

#: each foreign library, and the only files that know it
EDGES = {
    "pymysql": {"shared/mysql.py", "cdc_consumer/sql/packets.py"},
    "pymysqlreplication": {"cdc_producer/connection.py"},
    "zstandard": {"cdc_producer/decode/payload.py", "shared/topic/batch.py"},
    "orjson": {"cdc_producer/decode/columns.py", "shared/decode.py", "shared/event_shape.py", "shared/events.py"},
    "tomli": {"shared/profile_table.py"},
    "sqlglot": {"shared/statements/trees.py"},
    "fluvio": {"shared/topic/fluvio_client.py"},
    "pyspark": {"cdc_consumer/parity/spark/java.py", "cdc_consumer/parity/spark/context.py"},
    "sqlite3": {"shared/topic/embedded.py", "shared/topic/embedded_file.py", "cdc_consumer/parity/state.py"},
}
#: all that the audit takes from the consumer: values, sessions and positions as SQL
AUDIT, DOOR = "cdc_consumer/parity/", "cdc_consumer.sql"
#: a folder of more modules hides its rooms
MOST_MODULES = 15
#: what a dependency is called in an import; None where only another library imports it
IMPORT_NAMES = {"mysql-replication": "pymysqlreplication", "cryptography": None}


def imported(path: Path) -> Iterator[str]:
    """Dotted names a file imports anywhere, also inside functions."""
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield node.module or ""


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_imports_only_what_it_may(path: Path) -> None:
    file = path.relative_to(ROOT).as_posix()
    own = file.partition("/")[0]
    for name in imported(path):
        package = name.partition(".")[0]
        if package in PACKAGES:
            assert package in (own, "shared"), f"{file} imports {name}"
        elif package in EDGES:
            assert file in EDGES[package], f"{file} imports {package}, which only {sorted(EDGES[package])} may"
        else:
            assert package in sys.stdlib_module_names, f"{file} imports {package}, which has no edge file"


@pytest.mark.parametrize("path", [path for path in FILES if AUDIT in path.as_posix()], ids=lambda path: path.stem)
def test_the_audit_takes_only_sql_from_the_consumer(path: Path) -> None:
    allowed = (DOOR, AUDIT.strip("/").replace("/", "."))
    for name in imported(path):
        assert not name.startswith("cdc_consumer.") or name.startswith(allowed), f"{path} imports {name}"


@pytest.mark.parametrize(
    "folder", sorted({path.parent for path in FILES}), ids=lambda path: str(path.relative_to(ROOT))
)
def test_a_folder_is_taken_in_at_a_glance(folder: Path) -> None:
    modules = [path for path in folder.glob("*.py") if path.name != "__init__.py"]
    assert len(modules) <= MOST_MODULES, f"{folder} has {len(modules)} modules: which rooms hide in it?"


@pytest.mark.parametrize("library", EDGES)
def test_the_table_above_is_true(library: str) -> None:
    for file in EDGES[library]:
        assert library in {name.partition(".")[0] for name in imported(ROOT / file)}, f"{file} does not use {library}"


def test_every_folder_is_installed() -> None:
    """A package that is not listed is missing after `pip install .`, and nowhere else."""
    listed = tomli.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    assert sorted(listed) == sorted({".".join(path.parent.relative_to(ROOT).parts) for path in FILES})


def test_every_dependency_is_used() -> None:
    project = tomli.loads((ROOT / "pyproject.toml").read_text())["project"]
    for dependency in [*project["dependencies"], *project["optional-dependencies"]["parity"]]:
        name = re.split(r"[<>=\[]", dependency)[0]
        assert IMPORT_NAMES.get(name, name) in {*EDGES, None}, f"nothing imports {name}"
