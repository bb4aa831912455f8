"""Any file is a profile or is refused in one sentence: the keys of all programs, values of any type, any bytes."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.profiles import CONSUMER, PARITY, PRODUCER, UUID, fields_of, written

from cdc_consumer.parity.profile import ParityProfile, load_parity
from cdc_consumer.profile import ConsumerProfile, load_consumer
from cdc_producer.profile import ProducerProfile, load_producer
from shared.errors import ProfileError
from shared.profile import load_topic


@pytest.mark.parametrize(
    "text",
    ["[" * 20_000, f"a = {'[' * 20_000}", f"a = {'{a=' * 20_000}", f"{'a.' * 20_000}a = 1", f"a = {'9' * 10_000}"],
)
@pytest.mark.parametrize("load", [load_producer, load_consumer, load_parity, load_topic])
def test_what_is_deep_or_large_is_no_profile(load: Callable[[Path], object], tmp_path: Path, text: str) -> None:
    with pytest.raises(ProfileError, match=r"given\.toml") as caught:
        load(written(tmp_path, text))
    assert len(str(caught.value)) < 500


def toml(value: Any) -> str:
    """A value of TOML."""
    if isinstance(value, list):
        return f"[{', '.join(map(toml, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{toml(key)} = {toml(inner)}' for key, inner in value.items())}}}"
    if isinstance(value, str):
        return '"' + "".join(f"\\U{ord(letter):08x}" for letter in value) + '"'
    return str(value).lower()


VALUES = st.recursive(
    st.booleans() | st.integers() | st.integers(-(10**400), 10**400) | st.floats() | st.text()
    | st.sampled_from(["", "~", "~nobody/x", "a..b", "\0", "x" * 300, "binlog.000001:²", f"{UUID}:5-1", "verify-ca", "fluvio", "22:00-06:00", "/dev/null"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=4,
)  # fmt: skip
TABLES = ("", "database.", "database.tls.", "filters.", "topic.", "leader.", "follower.", "report.", "limits.")
KEYS = sorted(
    {field.name for kind in (ProducerProfile, ConsumerProfile, ParityProfile) for field, _ in fields_of(kind)}
    - {"user"}
)


def loads_or_says_why(path: Path) -> None:
    for load in (load_producer, load_consumer, load_parity, load_topic):
        try:
            load(path)
        except ProfileError as error:
            assert len(str(error)) < 1000
            assert "secret" not in str(error)


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_any_bytes_are_a_profile_or_not_one(tmp_path_factory: pytest.TempPathFactory, text: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any.toml"
    path.write_bytes(text)
    loads_or_says_why(path)


@settings(max_examples=1000)
@given(st.sampled_from([PRODUCER, CONSUMER, PARITY]), st.sampled_from(TABLES), st.sampled_from(KEYS), VALUES)
def test_any_value_of_any_key_is_taken_or_refused(
    tmp_path_factory: pytest.TempPathFactory, text: str, table: str, key: str, value: Any
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.toml"
    kept = re.sub(rf"^{key} = .*$", "", text, flags=re.MULTILINE)
    if table and f"[{table[:-1]}]" in kept:
        path.write_text(kept.replace(f"[{table[:-1]}]", f"[{table[:-1]}]\n{key} = {toml(value)}"))
    else:
        path.write_text(f"{table}{key} = {toml(value)}\n{kept}")
    loads_or_says_why(path)
