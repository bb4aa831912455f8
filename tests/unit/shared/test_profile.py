"""Profiles: what is wrong is named by key and file, and the profiles we ship say the truth about every key."""

from __future__ import annotations

import dataclasses
import re
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kit.programs import ROOT

from shared.errors import ProfileError
from shared.profile import ConsumerProfile, Limits, ProducerProfile, load_consumer, load_parity, load_producer

PRODUCER = """\
mysql_resource_name = "mysql-srv1"
[database]
user = "fluvio"
password = "secret"
[filters]
include_dbs = ["flvDb"]
[topic]
name = "events"
"""
CONSUMER = PRODUCER.partition("\n")[2]

Load = Callable[[Path], ProducerProfile | ConsumerProfile]
PARITY = """\
[leader]
user = "fluvio"
[follower]
user = "fluvio"
[filters]
include_dbs = ["flvDb"]
"""
SHIPPED: list[tuple[str, Load]] = [("producer_profile.toml", load_producer), ("consumer_profile.toml", load_consumer)]


@pytest.fixture
def profile(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str) -> Path:
        path = tmp_path / "given.toml"
        path.write_text(text)
        return path

    return write


def test_the_least_a_profile_needs(profile: Callable[[str], Path]) -> None:
    producer = load_producer(profile(PRODUCER))
    assert str(producer.database) == "127.0.0.1:3306"
    assert (producer.database.start, producer.database.heartbeat_seconds) == ("earliest", 5.0)
    assert (producer.topic.backend, producer.topic.retention_days) == ("embedded", None)
    consumer = load_consumer(profile(CONSUMER))
    assert (consumer.database.system_database, consumer.filters.include_dbs) == ("fluvio_cdc", ("flvDb",))


# what to replace in PRODUCER, by what, and what the error must say besides the file
BAD_PRODUCERS = [
    ('name = "events"', 'name = "events', "not valid TOML"),
    ("[topic]", "[topic", "not valid TOML"),
    ('user = "fluvio"', 'user = "fluvio"\nuser = "again"', "not valid TOML"),
    ('mysql_resource_name = "mysql-srv1"', "", "missing key mysql_resource_name"),
    ('"mysql-srv1"', '""', "mysql_resource_name is empty"),
    ('"mysql-srv1"', "7", "mysql_resource_name must be a string, not 7"),
    ('"mysql-srv1"', '"mysql-srv1"\nresource = "x"', "unknown key resource"),
    ('user = "fluvio"', "", "missing key database.user"),
    ("[database]", "[databse]", "unknown key databse"),
    ('user = "fluvio"', 'usr = "fluvio"', "unknown key database.usr"),
    ('user = "fluvio"', 'user = "fluvio"\nport = "3306"', "database.port must be a whole number, not '3306'"),
    ('user = "fluvio"', 'user = "fluvio"\nport = 0', "database.port must be between 1 and 65535, not 0"),
    ('user = "fluvio"', 'user = "fluvio"\nport = 65536', "database.port"),
    ('user = "fluvio"', 'user = "fluvio"\nport = true', "database.port must be a whole number, not True"),
    ('user = "fluvio"', 'user = "fluvio"\nhost = ["a", "b"]', "database.host must be a string"),
    ("password", 'password_env = "X"\npassword', "database.password and database.password_env exclude each other"),
    ('user = "fluvio"', 'user = "fluvio"\nstart = ""', "database.start"),
    ('user = "fluvio"', 'user = "fluvio"\nserver_id = 0', "database.server_id must be 1 to 4294967295, not 0"),
    ('user = "fluvio"', 'user = "fluvio"\nserver_id = 4294967296', "database.server_id"),
    ('user = "fluvio"', 'user = "fluvio"\nheartbeat_seconds = 0', "database.heartbeat_seconds must be 0.1 to 3600"),
    ('user = "fluvio"', 'user = "fluvio"\nlock_wait_seconds = 9', "unknown key database.lock_wait_seconds"),
    ('user = "fluvio"', 'user = "fluvio"\ntls = "required"', "database.tls must be a table"),
    ("[filters]", '[database.tls]\nmode = "on"\n[filters]', "database.tls.mode must be one of"),
    ("[filters]", '[database.tls]\nmode = "verify-ca"\n[filters]', "needs database.tls.ca"),
    ("[filters]", '[database.tls]\nca = "/no/such/file"\n[filters]', "database.tls.ca is not a file: /no/such/file"),
    ("[filters]", '[database.tls]\ncert = "x"\n[filters]', "database.tls.cert and database.tls.key go together"),
    ("[filters]", '[database.tls]\ncipher = "x"\n[filters]', "unknown key database.tls.cipher"),
    ("[filters]\n", "", "unknown key database.include_dbs"),
    ('[filters]\ninclude_dbs = ["flvDb"]', "", "missing table [filters]"),
    ('include_dbs = ["flvDb"]', "", "needs exactly one of include_dbs"),
    (
        'include_dbs = ["flvDb"]',
        'include_dbs = ["a"]\nexclude_dbs = ["b"]',
        "needs exactly one of include_dbs",
    ),
    ('include_dbs = ["flvDb"]', "include_dbs = []", "filters.include_dbs is empty"),
    ('include_dbs = ["flvDb"]', 'include_dbs = "flvDb"', "filters.include_dbs must be a list of database names"),
    ('include_dbs = ["flvDb"]', "include_dbs = [1]", "filters.include_dbs must be a list of database names"),
    ('include_dbs = ["flvDb"]', 'include_dbs = [""]', "filters.include_dbs must be a list of database names"),
    ('include_dbs = ["flvDb"]', 'include_db = ["flvDb"]', "unknown key filters.include_db"),
    ('name = "events"', "", "missing key topic.name"),
    ('[topic]\nname = "events"', "", "missing table [topic]"),
    ('name = "events"', 'name = "../events"', "topic.name"),
    ('name = "events"', 'name = "Events"', "topic.name may hold lower-case letters"),
    ('name = "events"', 'name = "events"\nbackend = "kafka"', 'topic.backend must be "embedded" or "fluvio"'),
    ('name = "events"', 'name = "events"\nretention_days = -1', "topic.retention_days must be positive, not -1"),
    ('name = "events"', 'name = "events"\nretention_days = "7"', "topic.retention_days must be a number, not '7'"),
]


@pytest.mark.parametrize(("old", "new", "told"), BAD_PRODUCERS, ids=[told for _, _, told in BAD_PRODUCERS])
def test_a_bad_producer_profile_names_key_and_file(
    profile: Callable[[str], Path], old: str, new: str, told: str
) -> None:
    assert PRODUCER.count(old) >= 1
    path = profile(PRODUCER.replace(old, new, 1))
    with pytest.raises(ProfileError) as caught:
        load_producer(path)
    assert told in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "secret" not in str(caught.value)
    assert caught.value.exit_status == 2


BAD_CONSUMERS = [
    ("[database]", 'mysql_resource_name = "mysql-srv1"\n[database]', "unknown key mysql_resource_name"),
    ('user = "fluvio"', 'user = "fluvio"\nstart = "latest"', "unknown key database.start"),
    (
        'user = "fluvio"',
        'user = "fluvio"\nlock_wait_seconds = 0',
        "database.lock_wait_seconds must be 1 to 3600",
    ),
    (
        'user = "fluvio"',
        'user = "fluvio"\nlock_wait_seconds = 1.5',
        "lock_wait_seconds must be a whole number",
    ),
    ('user = "fluvio"', 'user = "fluvio"\nsystem_database = 1', "database.system_database must be a string, not 1"),
]


@pytest.mark.parametrize(("old", "new", "told"), BAD_CONSUMERS, ids=[told for _, _, told in BAD_CONSUMERS])
def test_a_bad_consumer_profile_names_key_and_file(
    profile: Callable[[str], Path], old: str, new: str, told: str
) -> None:
    path = profile(CONSUMER.replace(old, new, 1))
    with pytest.raises(ProfileError) as caught:
        load_consumer(path)
    assert told in str(caught.value)
    assert str(path) in str(caught.value)


BAD_PARITIES = [
    ("[leader]", "[database]", "unknown key database; known here: leader, follower"),
    ('[follower]\nuser = "fluvio"\n', "", "missing table [follower]"),
    ('[leader]\nuser = "fluvio"', '[leader]\nuser = "fluvio"\nport = 0', "leader.port must be between 1 and 65535"),
    ('[follower]\nuser = "fluvio"', '[follower]\nuser = "fluvio"\nhosts = "a"', "unknown key follower.hosts"),
    ("[follower]", '[leader.tls]\nmode = "on"\n[follower]', "leader.tls.mode must be one of"),
    ("[filters]", '[follower.tls]\nca = "/no/such"\n[filters]', "follower.tls.ca is not a file: /no/such"),
    ("[filters]", "[report]\npath = 7\n[filters]", "report.path must be a string, not 7"),
    ("[filters]", "[limits]\nleader_connections = 0\n[filters]", "limits.leader_connections must be positive, not 0"),
    ("[filters]", "[limits]\nlag_seconds = -1\n[filters]", "limits.lag_seconds must be positive, not -1"),
    ("[filters]", '[limits]\nwindow = "22-6"\n[filters]', "limits.window must look like \"22:00-06:00\", not '22-6'"),
    ("[filters]", "[limits]\nslots = 2\n[filters]", "unknown key limits.slots"),
    ("[filters]", '[topic]\nname = "E"\n[filters]', "topic.name may hold lower-case letters"),
    ('include_dbs = ["flvDb"]', "", "needs exactly one of include_dbs"),
]


@pytest.mark.parametrize(("old", "new", "told"), BAD_PARITIES, ids=[told for _, _, told in BAD_PARITIES])
def test_a_bad_parity_profile_names_key_and_file(profile: Callable[[str], Path], old: str, new: str, told: str) -> None:
    path = profile(PARITY.replace(old, new, 1))
    with pytest.raises(ProfileError) as caught:
        load_parity(path)
    assert told in str(caught.value)
    assert str(path) in str(caught.value)


def test_the_parity_profile_we_ship_names_every_limit_and_its_default() -> None:
    path = ROOT / "profiles" / "parity_profile.toml"
    shipped = load_parity(path)
    assert shipped.topic is not None and shipped.topic.name == "rust-mysql-cdc"
    told = dict(re.findall(r"^# (\w+) = (\S+)", path.read_text(), re.MULTILINE))
    for field in dataclasses.fields(Limits):
        assert field.name in told, field.name
        if field.default is not None:
            assert told[field.name] == str(field.default), field.name


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match=r"cannot read profile .*none\.toml: No such file"):
        load_producer(tmp_path / "none.toml")
    with pytest.raises(ProfileError, match="Is a directory"):
        load_consumer(tmp_path)
    (tmp_path / "latin1.toml").write_bytes(b'mysql_resource_name = "\xe9"\n')
    with pytest.raises(ProfileError, match=r"latin1\.toml is not valid TOML"):
        load_producer(tmp_path / "latin1.toml")


def test_the_password_may_come_from_the_environment(
    profile: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = profile(PRODUCER.replace('password = "secret"', 'password_env = "LEADER_PASSWORD"'))
    monkeypatch.setenv("LEADER_PASSWORD", "from outside")
    assert load_producer(path).database.secret() == "from outside"
    monkeypatch.delenv("LEADER_PASSWORD")
    with pytest.raises(ProfileError, match="LEADER_PASSWORD, named by password_env, is not set"):
        load_producer(path).database.secret()


@pytest.mark.parametrize(("name", "load"), SHIPPED)
def test_the_profiles_we_ship_load(name: str, load: Load) -> None:
    shipped = load(ROOT / "profiles" / name)
    assert shipped.filters.include_dbs == ("flvDb",)
    assert (shipped.topic.name, shipped.topic.backend) == ("rust-mysql-cdc", "embedded")


@pytest.mark.parametrize(("name", "load"), SHIPPED)
def test_the_profiles_we_ship_name_every_key_and_its_default(name: str, load: Load) -> None:
    text = (ROOT / "profiles" / name).read_text()
    optional = "\n".join(re.findall(r"^# (\w+ = .*)$", text, re.MULTILINE))
    for field, owner in _fields(type(load(ROOT / "profiles" / name))):
        if owner == "TopicSettings" and field.name == "retention_days" and name.startswith("consumer"):
            continue  # the writer removes old records
        assert re.search(rf"^(# )?{field.name} = ", text, re.MULTILINE), f"{owner}.{field.name}"
        found = re.search(rf"^{field.name} = (\S+)", optional, re.MULTILINE)
        if found and field.default not in (None, dataclasses.MISSING) and field.name != "backend":
            assert found[1].strip('"') == str(field.default), f"{owner}.{field.name}"


def _fields(kind: type[Any]) -> list[tuple[dataclasses.Field[Any], str]]:
    """All keys of a profile, those of its tables included, with the class that has them."""
    found = []
    hints = typing.get_type_hints(kind)
    for field in dataclasses.fields(kind):
        inner = next(
            (option for option in (hints[field.name], *typing.get_args(hints[field.name])) if _is_table(option)), None
        )
        found += _fields(inner) if inner else [(field, kind.__name__)]
    return found


def _is_table(hint: Any) -> bool:
    return isinstance(hint, type) and dataclasses.is_dataclass(hint)


@pytest.mark.parametrize(("name", "load"), SHIPPED)
def test_the_commented_keys_of_the_profiles_we_ship_can_be_switched_on(
    name: str, load: Load, profile: Callable[[str], Path], tmp_path: Path
) -> None:
    (tmp_path / "file.pem").touch()
    text = re.sub(r'"/etc/mysql/[a-z-]+\.pem"', f'"{tmp_path}/file.pem"', (ROOT / "profiles" / name).read_text())
    plain, _, fluvio = text.partition("# The same through Fluvio")
    loaded = load(profile(_switch_on(plain)))
    assert loaded.database.tls is not None and loaded.database.tls.key == str(tmp_path / "file.pem")
    assert loaded.database.password_env and loaded.database.unix_socket
    loaded = load(profile(plain[: plain.index("\n[topic]")] + _switch_on(fluvio)))
    assert (loaded.topic.backend, loaded.topic.endpoint) == ("fluvio", "127.0.0.1:9103")


def _switch_on(text: str) -> str:
    """Uncomment every key and table, except what excludes another."""
    text = re.sub(r"^(password = |# exclude_dbs).*$", "", text, flags=re.MULTILINE)
    return re.sub(r"^# (\w+ = |\[)", r"\1", text, flags=re.MULTILINE)
