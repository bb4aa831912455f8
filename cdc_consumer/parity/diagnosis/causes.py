"""What the damage of a row looks like, told from its own values; patterns.py tells what several rows have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cdc_consumer.parity.diagnosis.signatures import signature
from cdc_consumer.parity.model import Shape

#: of a row whose columns all show the same text: only JSON hides the type of a number
SAME_TEXT = "a JSON value has numbers of another type"
#: the verb a phrase begins with, of one column -> of several
_PLURAL = {"is": "are", "has": "have"}

ColumnLiterals = Mapping[str, str]


def cause_of(leader: ColumnLiterals | None, follower: ColumnLiterals | None, shape: Shape) -> str:
    """What the damage of a row looks like, as in "created is 2 hours later; name is cut short".

    "" when a side has no row, or when the damage of one of its columns is not recognised.
    """
    if leader is None or follower is None:
        return ""
    columns = [column for column in shape.columns if leader[column.name] != follower[column.name]]
    if not columns:
        return SAME_TEXT
    names = [column.name for column in columns]
    if len(names) == 2 and _are_swapped(names, leader, follower):
        return f"{_listed(names)} are swapped"
    told: dict[str, list[str]] = {}
    for column in columns:
        phrase = signature(leader[column.name], follower[column.name], column)
        told.setdefault(phrase, []).append(column.name)
    if "" in told:
        return ""
    return "; ".join(_sentence(names, phrase) for phrase, names in told.items())


def _sentence(names: Sequence[str], phrase: str) -> str:
    verb, _, rest = phrase.partition(" ")
    return f"{_listed(names)} {verb if len(names) == 1 else _PLURAL[verb]} {rest}"


def _are_swapped(names: Sequence[str], leader: ColumnLiterals, follower: ColumnLiterals) -> bool:
    one, other = names
    return leader[one] == follower[other] and leader[other] == follower[one]


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
