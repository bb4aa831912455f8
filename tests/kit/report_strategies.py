"""Whatever hypothesis can think of, for the tests of the report: odd names, odd values, odd runs."""

from __future__ import annotations

from typing import get_args

from hypothesis import strategies as st

from cdc_consumer.parity.model import (
    STRIP_CELLS,
    Difference,
    Evidence,
    KeyEvent,
    Kind,
    Omission,
    SchemaDifference,
    Stage,
    TableName,
    TableResult,
    Undecided,
    Verdict,
)
from cdc_consumer.parity.run_model import Round, Run, Sample, ServerFacts
from kit.report import BROKEN, HOSTILE, json_literal, text

#: names as MySQL takes them, and some it would not
names = st.one_of(st.sampled_from([HOSTILE, BROKEN, "id", "naïve", "a.b", "`", " "]), st.text(min_size=1, max_size=12))
_characters = st.characters(codec="utf-8")
texts = st.one_of(
    st.sampled_from([HOSTILE, "", " ", "  x ", "NULL", "␠", "⟨U+0020⟩", "e\u0301", "\U0001f468\u200d\U0001f469"]),
    st.text(_characters, max_size=40),
    st.text("ab \t", max_size=600),
)
literals = st.one_of(
    st.just("NULL"),
    st.integers().map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.decimals(allow_nan=False, allow_infinity=False, places=3).map(str),
    st.datetimes().map(lambda value: f"'{value.isoformat(' ')}'"),
    texts.map(text),
    st.binary(max_size=30).map(lambda data: f"_utf8mb4 x'{data.hex()}'"),
    st.binary(max_size=400).map(lambda data: f"x'{data.hex()}'"),
    st.tuples(st.sampled_from(["latin1", "ucs2", "gbk", "utf16le", "swe7", "binary"]), st.binary(max_size=20)).map(
        lambda pair: f"_{pair[0]} x'{pair[1].hex()}'"
    ),
    texts.map(json_literal),
    st.sampled_from(["=", "L", "F", "x'0'", "CAST(1 AS JSON)", HOSTILE]),
)
_table_names = st.builds(TableName, names, names)
_counts = st.integers(0, 10**12)
_seconds = st.floats(0, 1e6)
_hashes = st.one_of(st.none(), st.binary(min_size=32, max_size=32).map(bytes.hex))
_events = st.builds(
    KeyEvent, _counts, _counts, names, names, st.one_of(st.none(), names), st.integers(-(10**18), 10**18)
)
_evidence = st.builds(
    Evidence, st.sampled_from(["no event", "after-image", "idle"]), names, names, names, names, st.integers(0, 9),
    st.lists(_events, max_size=3).map(tuple),
)  # fmt: skip


@st.composite
def any_difference(draw: st.DrawFn, tables: st.SearchStrategy[TableName] = _table_names) -> Difference:
    """A difference whose rows have the same columns."""
    kind: Kind = draw(st.sampled_from(get_args(Kind)))
    columns = draw(st.lists(names, unique=True, max_size=5))
    row = st.fixed_dictionaries(dict.fromkeys(columns, literals))
    leader = draw(st.none() if kind == "extra" else row)
    follower = draw(st.none() if kind == "missing" else row)
    copies = draw(st.tuples(_counts, _counts)) if kind == "copies" else None
    return Difference(
        draw(tables), kind, draw(st.dictionaries(names, literals, max_size=3)), leader, follower, draw(_hashes), draw(_hashes),
        draw(_evidence), draw(st.sampled_from(get_args(Stage))), draw(st.one_of(st.just(""), names)), copies,
    )  # fmt: skip


@st.composite
def any_run(draw: st.DrawFn) -> Run:
    """A run of odd names and values; its parts need not agree with one another."""
    found = draw(st.lists(_table_names, unique=True, max_size=4))
    of = st.sampled_from(found) if found else _table_names
    facts = st.builds(ServerFacts, names, names, names, names, names)
    excluded = st.lists(st.tuples(names, names), max_size=2).map(tuple)
    strip = st.one_of(st.just(()), st.lists(_counts, min_size=STRIP_CELLS, max_size=STRIP_CELLS).map(tuple))
    results = [
        draw(st.builds(TableResult, st.just(table), st.sampled_from(get_args(Verdict)), names, *[_counts] * 10, names, names,
                       excluded, _seconds, strip))
        for table in found
    ]  # fmt: skip
    rows = draw(st.lists(any_difference(of), max_size=4)) if found else []
    grades = st.sampled_from(["breaking", "integrity", "behaviour", "performance", "cosmetic", "expected"])
    maybe = st.one_of(st.none(), texts)
    things = st.builds(SchemaDifference, grades, names, names, names, names, texts, maybe, maybe, texts)
    samples = st.builds(
        Sample, _seconds, _counts, _counts, st.one_of(st.none(), _seconds), st.one_of(st.none(), _counts)
    )
    return Run(
        draw(names), draw(names), draw(names), draw(names), draw(names), draw(facts), draw(facts), draw(names), draw(names), draw(names),
        draw(_seconds), results, rows, len(rows) + draw(st.integers(0, 3)),
        draw(st.lists(st.builds(Undecided, of, st.dictionaries(names, literals, max_size=2), texts), max_size=3)),
        draw(st.lists(things, max_size=3)), draw(st.lists(st.builds(Round, _counts, _seconds, *[_counts] * 4, _seconds), max_size=3)),
        draw(st.lists(samples, max_size=5)), draw(st.dictionaries(_counts, _counts, max_size=4)),
        draw(st.dictionaries(names, names, max_size=2)), draw(st.booleans()), draw(names),
        draw(st.lists(st.builds(Omission, _counts, _counts, names, maybe, names, texts, maybe, names, names), max_size=3)),
    )  # fmt: skip
