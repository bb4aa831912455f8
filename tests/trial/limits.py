"""Stops that README's Limits name, known by the sentence of the program that stops."""

from __future__ import annotations

import re

from docker.local.get_mysql import ROOT
from trial.verdict import STOPPED, Verdict

#: the error in what a trial says of native replication
NATIVE_ERROR = re.compile(r"stops: Error '(.+?)' on query\.")

#: what a sentence of the programs holds, as a regular expression, and the words of Limits that name such a stop
LIMITS = (
    (r"\bas text\b", "Rows logged as text"),
    (r"\bbinlog_row_image\b", "row images other than `FULL`"),
    (r"\bpartial JSON update\b", "partial JSON updates"),
    (r"\bXA transaction\b", "XA transactions on replicated databases"),
    (r"which the filter includes, and .* which it does not", "DDL that writes both included and excluded databases"),
    (r"in a foreign key, in LIKE or in UNION", "A foreign key from an included to an excluded database"),
    (r"\b(3548|SRID \d+)\b", "an SRID of your own"),
    (r"\b(3510)\b", "make a `TABLESPACE` that a table names"),
    (r"is an? [A-Z ]+ from a client of character set", "from a client that does not speak UTF-8 whose name"),
    (r"cannot be known in the client's character set", "from a client of sjis, ujis or gb18030"),
    (r"Incorrect INTERVAL value: 'NULL'", "an event whose schedule names a user variable"),
    (r"is stored by (?!InnoDB)\w+", "tables of engines without transactions"),
    (r"which no SQL literal can express", "JSON values of MySQL-internal types"),
    (r"rolled back in part", "tables of engines without transactions"),
)


def limit_of(verdict: Verdict) -> str:
    """Return the words that name a stop: those of Limits, or that native replication stops so too; "" without any.

    The first sentence counts: it is that of the program that stopped at the earlier place.
    """
    if not verdict.sentences:
        return ""
    native = NATIVE_ERROR.match(verdict.native)
    if native and native[1] in verdict.sentences[0]:
        return "native replication stops with the same error"
    return next((words for pattern, words in LIMITS if re.search(pattern, verdict.sentences[0])), "")


def is_fault(verdict: Verdict) -> bool:
    """Tell whether a follower differs in silence, or a program stops and nothing names that."""
    return verdict.is_silent or (verdict.kind == STOPPED and not limit_of(verdict))


def limits_text() -> str:
    """Return the section Limits of README, on one line."""
    text = (ROOT / "README.md").read_text()
    return " ".join(text.partition("\n## Limits\n")[2].partition("\n## ")[0].split())
