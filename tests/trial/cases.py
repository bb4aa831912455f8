"""Scripts that once found something, each with the verdict it must have."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from trial.script import FIRST, Step, read_script
from trial.verdict import EQUAL, Verdict

FOLDER = Path(__file__).with_name("cases")
#: the first line of a case: a verdict, and for a stop words of its sentence
EXPECTED = re.compile(r"# expect: (equal|as native|stopped)(?:: (.+))?")
#: the second line of a case that does not have its verdict yet
RED = "# red"


@dataclass(frozen=True, slots=True)
class Case:
    """One file of `cases`; `words` are in the sentence of an expected stop."""

    name: str
    kind: str
    words: str
    is_red: bool
    steps: tuple[Step, ...]

    def met_by(self, verdict: Verdict) -> bool:
        """Whether the trial said what it must say."""
        return verdict.kind == self.kind and (not self.words or any(self.words in said for said in verdict.sentences))


def load_cases() -> list[Case]:
    """All of them, by name. Raises ValueError for a file that does not say what is expected."""
    return [_load(path) for path in sorted(FOLDER.glob("*.sql"))]


def _load(path: Path) -> Case:
    text = path.read_bytes()
    first, second, *_ = text.decode("utf-8", "replace").splitlines()
    found = EXPECTED.fullmatch(first)
    if found is None:
        raise ValueError(f"{path} must begin with: {EXPECTED.pattern}")
    return Case(path.stem, found[1], found[2] or "", second == RED, tuple(read_script(text).steps))


def together(cases: Iterable[Case]) -> list[Step]:
    """All cases as one script, each with sessions and a database of its own: a sixth of the time it takes one by one."""
    steps: list[Step] = []
    for case in cases:
        steps.append(Step(FIRST, f"CREATE DATABASE {case.name}".encode()))
        began: set[str] = set()
        for step in case.steps:
            session = f"{case.name} {step.session}"
            if session not in began:
                steps.append(Step(session, f"USE {case.name}".encode()))
            began.add(session)
            steps.append(Step(session, step.sql))
        steps += [Step(session, None) for session in sorted(began)]
    return steps


def equal_cases(cases: Iterable[Case]) -> list[Case]:
    """Those that must arrive, and do."""
    return [case for case in cases if case.kind == EQUAL and not case.is_red]
