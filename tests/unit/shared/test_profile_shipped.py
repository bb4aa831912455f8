"""The profiles we ship load, and say the truth about every key."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from kit.certificates import write_certificate
from kit.profiles import fields_of, written
from kit.programs import ROOT

from cdc_consumer.profile import ConsumerProfile, load_consumer
from cdc_producer.profile import ProducerProfile, load_producer

Load = Callable[[Path], ProducerProfile | ConsumerProfile]
SHIPPED: list[tuple[str, Load]] = [("producer_profile.toml", load_producer), ("consumer_profile.toml", load_consumer)]


@pytest.mark.parametrize(("name", "load"), SHIPPED)
def test_the_profiles_we_ship_load(name: str, load: Load) -> None:
    shipped = load(ROOT / "profiles" / name)
    assert shipped.filters.include_dbs == ("flvDb",)
    assert (shipped.topic.name, shipped.topic.backend) == ("rust-mysql-cdc", "embedded")


#: keys of a topic that the other program heeds
REFUSED_KEYS = {
    "producer_profile.toml": {"names"},
    "consumer_profile.toml": {"retention_days", "replication", "routes", "control"},
}


@pytest.mark.parametrize(("name", "load"), SHIPPED)
def test_the_profiles_we_ship_name_every_key_and_its_default(name: str, load: Load) -> None:
    text = (ROOT / "profiles" / name).read_text()
    optional = "\n".join(re.findall(r"^# (\w+ = .*)$", text, re.MULTILINE))
    for field, owner in fields_of(type(load(ROOT / "profiles" / name))):
        if owner == "TopicSettings" and field.name in REFUSED_KEYS[name]:
            continue
        if field.name == "routes":
            assert "\n# [topic.routes]\n" in text
            continue
        assert re.search(rf"^(# )?{field.name} = ", text, re.MULTILINE), f"{owner}.{field.name}"
        found = re.search(rf"^{field.name} = (\S+)", optional, re.MULTILINE)
        if found and field.default not in (None, dataclasses.MISSING) and field.name != "backend":
            default = str(field.default).lower() if field.type == "bool" else str(field.default)
            assert found[1].strip('"') == default, f"{owner}.{field.name}"


@pytest.mark.parametrize(("name", "load"), SHIPPED)
def test_the_commented_keys_of_the_profiles_we_ship_can_be_switched_on(name: str, load: Load, tmp_path: Path) -> None:
    made = write_certificate(tmp_path)
    text = re.sub(r'"/etc/mysql/[a-z-]+key\.pem"', f'"{made.key}"', (ROOT / "profiles" / name).read_text())
    text = re.sub(r'"/etc/mysql/[a-z-]+\.pem"', f'"{made.cert}"', text)
    plain, _, fluvio = text.partition("# The same through Fluvio")
    loaded = load(written(tmp_path, _switch_on(plain)))
    assert loaded.database.tls is not None and loaded.database.tls.key == str(made.key)
    assert loaded.database.password_env and loaded.database.unix_socket
    loaded = load(written(tmp_path, plain[: plain.index("\n[topic]")] + _switch_on(fluvio)))
    assert (loaded.topic.backend, loaded.topic.endpoint) == ("fluvio", "127.0.0.1:9103")


def _switch_on(text: str) -> str:
    """Uncomment every key and table, except what excludes another."""
    text = re.sub(r"^(password = |host = |port = |# exclude_dbs).*$", "", text, flags=re.MULTILINE)
    return re.sub(r"^# (\w+ = |\[)", r"\1", text, flags=re.MULTILINE)
