"""Writes docs/fidelity.md from what the tests hold; `PYTHONPATH=.:tests python -m trial.fidelity`."""

from __future__ import annotations

import ast
import importlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from kit.type_cases import CASES, JSONS

from docker.local.get_mysql import ROOT
from trial.cases import load_cases
from trial.invent.settings import UNLOGGED, VALUES
from trial.verdict import AS_NATIVE, EQUAL

DOCUMENT = ROOT / "docs" / "fidelity.md"
CORPUS = ROOT / "tests/unit/shared/corpus/statements.txt"
#: modules of tests whose functions are named after a fault
FAULTS = ("link_faults", "leader_faults", "topic_faults", "follower_faults", "crash_points", "crash")

HEAD = """# What arrives exactly, and what stops

This page is made from the data of the tests (`PYTHONPATH=.:tests python -m trial.fidelity` writes it, and a test fails
when it is not current). *exact*: the follower holds the same bytes as the leader. *stops*: one of the programs ends
with a sentence that holds the words given here, and nothing of that transaction is on the follower. *as native*: the
binlog does not tell, and MySQL's own replication gives the same. All of it was run on MySQL 9.7.
"""
#: what becomes of a statement, by what `read_statement` says that it acts on
OUTCOMES = {
    "TRIGGER": "not created on the follower: the leader's rows hold what its triggers do",
    "ACCOUNT": "not replicated",
    "MAINTENANCE": "not replicated",
    "TEMPORARY": "not replicated: it changes nothing that lasts",
    "TRANSACTION": "an edge of a transaction; XA stops",
    "DML": "stops where it is logged as text",
    "refused": "stops: what it writes cannot be told for certain",
}


def fidelity() -> str:
    """The text of the page."""
    sections = (
        ("Types", ("type", "values tried", ""), _types()),
        ("Changes, as the binlog holds them", ("", "for example", ""), _forms()),
        ("Statements", ("of", "forms tried", ""), _statements()),
        ("Settings of a session", ("", "values tried", ""), _sessions()),
        ("Settings of the leader", ("", "value", ""), _settings()),
        ("What once went wrong, or is a limit", ("", "the statement in question", ""), _cases()),
        ("A follower that somebody else changed", ("", "and the leader does", ""), _diverged()),
        ("Records that are not as the producer wrote them", ("", ""), _records()),
        ("Faults", ("", ""), _faults()),
    )
    parts = [HEAD]
    for title, columns, rows in sections:
        parts += [f"\n## {title}\n\n", _line(columns), _line(["---"] * len(columns)), *map(_line, rows)]
    return "".join(parts)


def _types() -> Iterator[Sequence[str]]:
    """A column of each type holds each value, and it is inserted, updated from and to, and deleted."""
    seen: dict[str, list[str]] = {}
    for case in (*CASES, JSONS):
        seen.setdefault(case.type, []).extend(value for value in case.values if value not in seen.get(case.type, ()))
    for type, values in seen.items():
        yield _code(type), _some(values), "exact"


def _forms() -> Iterator[Sequence[str]]:
    forms, leader = _tests("integration.test_event_forms"), _tests("acceptance.test_leader_faults")
    for script in (*forms.EQUAL, forms.TAGGED):
        yield _words(script.id), _code(script.statements[-1]), "exact"
    seen = set()
    for id, statements, words in (*forms.STOPPED, *((id, *rest) for id, rest in leader.STATEMENTS.items())):
        if words not in seen:
            yield _words(id), _code(statements[min(1, len(statements) - 1)]), f"stops: {words}"
        seen.add(words)


def _statements() -> Iterator[Sequence[str]]:
    """By what they act on: their verbs, and how many forms of each are in the corpus."""
    kinds: dict[str, Counter[str]] = {}
    for line in CORPUS.read_text().splitlines():
        head = line.partition("|")[0].split()
        if head and not line.startswith(("#", "@")):
            kinds.setdefault(head[-1], Counter())[head[0]] += 1
    for kind, verbs in sorted(kinds.items()):
        forms = ", ".join(f"{verb} ({count})" for verb, count in sorted(verbs.items()))
        yield kind, forms, OUTCOMES.get(kind, "run as the leader ran it, in the session it ran in")


def _sessions() -> Iterator[Sequence[str]]:
    for name, values in VALUES:
        yield _code(name), _some(dict.fromkeys(values)), "as native" if name in UNLOGGED else "exact"


def _settings() -> Iterator[Sequence[str]]:
    for name, value, *words in _tests("acceptance.test_leader_faults").SETTINGS.values():
        yield _code(name), _code(value), f"stops: {words[0]}"


def _cases() -> Iterator[Sequence[str]]:
    for case in load_cases():
        outcome = {EQUAL: "exact", AS_NATIVE: "as native"}.get(case.kind, f"stops: {case.words}")
        statement = max((step.sql for step in case.steps if step.sql), key=len).decode("utf-8", "backslashreplace")
        yield case.name.replace("_", " "), _code(statement), "**not yet**" if case.is_red else outcome


def _diverged() -> Iterator[Sequence[str]]:
    for name, (_, change, words) in _tests("acceptance.test_follower_faults").DIVERGED.items():
        yield _words(name), _code(change), f"stops: {words.replace('D.', 'db.')}"


def _records() -> Iterator[Sequence[str]]:
    topic = _tests("acceptance.test_topic_faults")
    yield from ((name, "exact: a repeat is skipped") for name in topic.SURVIVED)
    yield from ((name, f"stops: {words}") for name, (_, _, words) in topic.REFUSED.items())


def _faults() -> Iterator[Sequence[str]]:
    """Every test of a fault: its name, and what it says of itself."""
    for module in FAULTS:
        path = ROOT / "tests/acceptance" / f"test_{module}.py"
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                said = (ast.get_docstring(node) or "").partition("\n")[0]
                yield _words(node.name.removeprefix("test_")), said


def _tests(module: str) -> Any:
    return importlib.import_module(module)


def _words(name: str) -> str:
    """A test's name without the number it has in the catalogue of traps."""
    return re.sub(r"^[A-Za-z]\d+[_ -]|^[TQ]_", "", name).replace("_", " ")


def _some(values: Iterable[str]) -> str:
    """As many values as a line of the table holds."""
    given = list(values)
    shown = [_code(value) for value in given if len(value) <= 40][:6]
    return " ".join(shown) + (f" and {len(given) - len(shown)} more" if len(given) > len(shown) else "")


def _code(text: str) -> str:
    text = " ".join(text.split())
    fence = "``" if "`" in text else "`"
    space = " " if "`" in text else ""
    return f"{fence}{space}{text if len(text) < 110 else text[:110] + ' ...'}{space}{fence}"


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


if __name__ == "__main__":
    Path(DOCUMENT).write_text(fidelity())
