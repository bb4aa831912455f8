"""Documents that are alike: a generated function says what going from entry to entry says, or nothing."""

from __future__ import annotations

import struct
from itertools import chain

import pytest
from fuzz.blocks import load_seeds
from hypothesis import given
from hypothesis import strategies as st

from cdc_producer.decode.binlog_event import UNREADABLE
from cdc_producer.decode.documents import forms, json_binary
from cdc_producer.decode.documents.forms import Forms
from cdc_producer.decode.documents.json_binary import _Document, json_value

INT16, DOUBLE, STRING, LITERAL, OBJECT, ARRAY = 5, 11, 12, 4, 0, 2
#: a member's kind, and its value when that stands in its entry, else its bytes
Member = tuple[int, "int | bytes"]


def container(members: dict[bytes, Member] | list[Member]) -> bytes:
    """A small object or array as MySQL writes it, without its kind."""
    keys = list(members) if isinstance(members, dict) else []
    values = list(members.values()) if isinstance(members, dict) else members
    at = 4 + 4 * len(keys) + 3 * len(values)
    table = b""
    for key in keys:
        table += struct.pack("<HH", at, len(key))
        at += len(key)
    entries = rest = b""
    for kind, value in values:
        inline = isinstance(value, int)
        entries += struct.pack("<BH", kind, value if inline else at + len(rest))
        rest += b"" if inline else value
    whole = table + entries + b"".join(keys) + rest
    return struct.pack("<HH", len(values), 4 + len(whole)) + whole


def string(text: str) -> bytes:
    value = text.encode()
    length = bytes([len(value)]) if len(value) < 128 else bytes([len(value) & 127 | 128, len(value) >> 7])
    return length + value


SCALARS = st.one_of(
    st.integers(0, 65535).map(lambda number: (INT16, number)),
    st.integers(0, 2).map(lambda number: (LITERAL, number)),
    st.text(max_size=200).map(lambda text: (STRING, string(text))),
    st.floats(allow_nan=False, allow_infinity=False).map(lambda number: (DOUBLE, struct.pack("<d", number))),
    st.integers(-(1 << 31), (1 << 31) - 1).map(lambda number: (7, struct.pack("<i", number))),
    st.integers(-(1 << 63), (1 << 63) - 1).map(lambda number: (9, struct.pack("<q", number))),
)
KEYS = st.sampled_from(["id", "name", "tags", "%s", 'quo"te', "sub", "ключ", "'''", "{x}", ""]).map(str.encode)
MEMBERS = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.dictionaries(KEYS, inner, max_size=4).map(lambda found: (OBJECT, container(found))),
        st.lists(inner, max_size=4).map(lambda found: (ARRAY, container(found))),
    ),
    max_leaves=8,
)
DOCUMENTS = st.dictionaries(KEYS, MEMBERS, min_size=1, max_size=5).map(lambda found: b"\0" + container(found))


def read(data: bytes) -> str:
    """Without forms; the name of the error when it cannot be read."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_binary, "_FORMS", Forms(_Document))
        try:
            return json_value(data)
        except UNREADABLE:
            return "refused"


def compare(data: bytes, others: list[bytes]) -> int:
    """Read others by the form of `data`; returns how many of them have it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forms, "MANY", 1)
        found = Forms(_Document)
        assert [found.text(data), found.text(data)] == [None, None]
        patch.setattr(json_binary, "_FORMS", found)
        form = next(iter(found._forms.values()), None)
        if form is None:
            return 0
        form.patience = 1 << 30
        texts = [found.text(other) for other in others]
        for other, text in zip(others, texts, strict=True):
            if text is not None:
                patch.setattr(json_binary, "_FORMS", Forms(_Document))
                assert f'{{"Json":{json_binary.json_string(text)}}}' == read(other)
        return sum(text is not None for text in texts)


@given(DOCUMENTS, st.lists(st.tuples(st.integers(0), st.integers(0, 7)), max_size=8))
def test_a_form_reads_as_entries_do_or_not_at_all(data: bytes, flips: list[tuple[int, int]]) -> None:
    others = [data]
    for at, bit in flips:
        other = bytearray(data)
        other[at % len(data)] ^= 1 << bit
        others.append(bytes(other))
    assert compare(data, others) >= (read(data).startswith('{"Json":') and not holds_others(data))


def holds_others(data: bytes) -> bool:
    """Whether a document has no form: one of its objects has no members, or a member that is listed with its type."""
    form = forms._Source(_Document)
    try:
        form.function(data)
    except (struct.error, LookupError, ValueError):
        return True
    return False


LONG = b"\0" + container({b"a": (STRING, string("x" * 100)), b"b": (STRING, string("y"))})
#: where the entries of the two stand, and the length of the second
ENTRIES = 1 + 4 + 4 * 2


@pytest.mark.parametrize(
    "altered",
    [
        LONG[: ENTRIES + 4] + LONG[ENTRIES + 1 : ENTRIES + 3] + LONG[ENTRIES + 6 :],
        LONG[:-2] + b"\2y",
        LONG[:-2].replace(string("x" * 100)[:1] + b"x", b"\x5ax") + b"\2y",
        LONG[:-2] + b"\x81\0y"[:2] + b"y",
        LONG[:3] + b"\xff\xff" + LONG[5:],
    ],
    ids=[
        "both read the same bytes",
        "a string beyond the end",
        "and a hole",
        "its length in two bytes",
        "the object beyond the end",
    ],
)
def test_what_no_leader_wrote(altered: bytes) -> None:
    assert compare(LONG, [LONG, altered]) == 1 + (read(altered) != "refused")


def test_what_a_leader_wrote() -> None:
    """Those that have a form, and the same ones cut short."""
    seeds = [seed for seed in load_seeds("json") if seed]
    assert any(compare(seed, [seed, seed[:-1]]) for seed in seeds)


def test_many_documents_of_changing_forms(monkeypatch: pytest.MonkeyPatch) -> None:
    """A form that few have still gives way to another, ever later; what is remembered is bounded."""
    monkeypatch.setattr(forms, "MANY", 3)
    monkeypatch.setattr(forms, "MOST_ROOTS", 4)
    known = Forms(_Document)
    documents = [
        b"\0" + container({b"a": (INT16, number), b"b": (OBJECT, container({b"%d" % (number // 40): (LITERAL, 1)}))})
        for number in range(200)
    ]
    roots = [b"\0" + container({b"%d" % number: (INT16, 1)}) for number in range(50)]
    texts = [known.text(document) for document in chain(documents, roots)]
    monkeypatch.setattr(json_binary, "_FORMS", Forms(_Document))
    assert [text for text in texts if text] == [
        read(document)[len('{"Json":"') : -2].replace('\\"', '"')
        for document, text in zip(chain(documents, roots), texts, strict=True)
        if text
    ]
    assert 100 < sum(map(bool, texts)) < 200
    assert len(known._forms) <= 4
