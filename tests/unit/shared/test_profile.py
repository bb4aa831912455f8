"""Profiles: what is wrong is named by key and file, and the profiles we ship say the truth about every key."""

from __future__ import annotations

import dataclasses
import re
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.certificates import write_certificate
from kit.programs import ROOT

from cdc_consumer.parity.profile import Limits, ParityProfile, load_parity
from cdc_consumer.profile import ConsumerProfile, load_consumer
from cdc_producer.profile import ProducerProfile, load_producer
from shared.errors import ProfileError
from shared.profile import load_topic

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
UUID = "6b377eb2-e57a-11f1-9bfd-02fc00000001"
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
    ('name = "events"', 'name = "events"\nretention_days = -1', "topic.retention_days must be 0.001 to 36500, not -1"),
    ('name = "events"', 'name = "events"\nreplication = 2', 'topic.replication needs topic.backend = "fluvio"'),
    (
        'name = "events"',
        'name = "events"\nbackend = "fluvio"\nreplication = 0',
        "topic.replication must be 1 to 32, not 0",
    ),
    (
        'name = "events"',
        'name = "events"\nbackend = "fluvio"\n[topic.tls]',
        "[topic.tls] needs topic.endpoint; the active Fluvio profile has TLS of its own",
    ),
    (
        'name = "events"',
        'name = "events"\nbackend = "fluvio"\nendpoint = "a:1"\n[topic.tls]\nmode = "off"',
        "topic.tls.mode must be required or verify-identity, not 'off'",
    ),
    (
        'name = "events"',
        'name = "events"\nbackend = "fluvio"\nendpoint = "a:1"\n[topic.tls]\nmode = "verify-identity"',
        'topic.tls.mode = "verify-identity" needs topic.tls.domain',
    ),
    ("mysql_resource_name", "raw = 1\nmysql_resource_name", "raw must be true or false, not 1"),
    ('name = "events"', 'name = "events"\nretention_days = "7"', "topic.retention_days must be a number, not '7'"),
    ('name = "events"', 'name = "events"\nretention_days = nan', "topic.retention_days must be a number, not nan"),
    ('name = "events"', 'name = "events"\nretention_days = inf', "topic.retention_days must be a number, not inf"),
    ('name = "events"', 'name = "events"\nretention_days = 1e300', "retention_days must be 0.001 to 36500, not 1e+300"),
    (
        'name = "events"',
        'name = "events"\nretention_days = 1e-300',
        "topic.retention_days must be 0.001 to 36500, not 1e",
    ),
    ('name = "events"', f'name = "{"e" * 201}"', "topic.name may have 200 characters, not 201"),
    ('name = "events"', 'name = ""', "topic.name is empty"),
    ('name = "events"', 'name = "events"\npath = ""', "topic.path is empty"),
    ('name = "events"', 'name = "events"\npath = "a\\u0000b"', "topic.path holds a NUL character"),
    (
        'name = "events"',
        'name = "events"\npath = "~nosuchuser/x"',
        "topic.path names the home of a user that is not known",
    ),
    ('name = "events"', f'name = "events"\npath = "/{"x" * 256}"', "topic.path holds a name of more than 255 bytes"),
    ('name = "events"', 'name = "events"\nendpoint = "a:1"', 'topic.endpoint needs topic.backend = "fluvio"'),
    ('user = "fluvio"', 'user = "fluvio"\nhost = ""', "database.host is empty"),
    ('user = "fluvio"', 'user = "fluvio"\nhost = "a..b"', "database.host cannot be the name of a machine: 'a..b'"),
    ('user = "fluvio"', f'user = "fluvio"\nhost = "{"a" * 64}.b"', "database.host cannot be the name of a machine"),
    ('user = "fluvio"', f'user = "fluvio"\nport = 0x{"f" * 9000}', "database.port must be between 1 and 65535"),
    ('password = "secret"', 'password = ["secret"]', "database.password must be a string, not an array"),
    ('user = "fluvio"', 'user = "fluvio"\nstart = "binlog.000001:²"', "database.start must be"),
    ('user = "fluvio"', 'user = "fluvio"\nstart = "binlog.000001:٤"', "database.start must be"),
    ('user = "fluvio"', f'user = "fluvio"\nstart = "{UUID}:5-1"', "database.start must be"),
    ('user = "fluvio"', f'user = "fluvio"\nstart = "{UUID}:٤"', "database.start must be"),
    (
        'user = "fluvio"',
        'user = "fluvio"\nheartbeat_seconds = nan',
        "database.heartbeat_seconds must be a number, not nan",
    ),
    ("[filters]", '[database.tls]\nca = "~nosuchuser/ca"\n[filters]', "database.tls.ca names the home of a user"),
    (
        'include_dbs = ["flvDb"]',
        'include_dbs = ["mysql"]',
        "filters.include_dbs names mysql, which is never replicated",
    ),
    (
        'include_dbs = ["flvDb"]',
        'include_dbs = ["fluvio_cdc", "a"]',
        "filters.include_dbs names fluvio_cdc, which is never",
    ),
    ('include_dbs = ["flvDb"]', f'include_dbs = ["{"a" * 65}"]', "which cannot be the name of a database"),
    ("[topic]", "[topic.name]", "topic.name must be a string, not a table"),
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
    (
        'user = "fluvio"',
        'user = "fluvio"\nsystem_database = "sys"',
        "database.system_database must be a database of its own",
    ),
    (
        'user = "fluvio"',
        'user = "fluvio"\nsystem_database = "flvDb"',
        "filters.include_dbs names flvDb, which is never replicated",
    ),
    ('name = "events"', 'name = "events"\nretention_days = 7', "topic.retention_days is for the producer's profile"),
    (
        'name = "events"',
        'name = "events"\nbackend = "fluvio"\nreplication = 2',
        "topic.replication is for the producer's profile",
    ),
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
    (
        "[filters]",
        "[limits]\nleader_connections = 0\n[filters]",
        "limits.leader_connections must be positive and at most 1000000000, not 0",
    ),
    (
        "[filters]",
        "[limits]\nlag_seconds = -1\n[filters]",
        "limits.lag_seconds must be positive and at most 1000000, not -1",
    ),
    ("[filters]", '[limits]\nwindow = "22-6"\n[filters]', "limits.window must look like \"22:00-06:00\", not '22-6'"),
    ("[filters]", "[limits]\nslots = 2\n[filters]", "unknown key limits.slots"),
    ("[filters]", '[topic]\nname = "E"\n[filters]', "topic.name may hold lower-case letters"),
    ('include_dbs = ["flvDb"]', "", "needs exactly one of include_dbs"),
    ('[leader]\nuser = "fluvio"', '[leader]\nuser = "fluvio"\nserver_id = 7', "unknown key leader.server_id"),
    ('[leader]\nuser = "fluvio"', '[leader]\nuser = "fluvio"\nstart = "latest"', "unknown key leader.start"),
    (
        '[leader]\nuser = "fluvio"',
        '[leader]\nuser = "fluvio"\nheartbeat_seconds = 1',
        "unknown key leader.heartbeat_seconds",
    ),
    (
        '[follower]\nuser = "fluvio"',
        '[follower]\nuser = "fluvio"\nlock_wait_seconds = 1',
        "unknown key follower.lock_wait_seconds",
    ),
    (
        '[follower]\nuser = "fluvio"',
        '[follower]\nuser = "fluvio"\nsystem_database = "flvDb"',
        "names flvDb, which is never replicated",
    ),
    (
        "[filters]",
        "[limits]\nstatement_seconds = 1e300\n[filters]",
        "limits.statement_seconds must be positive and at most",
    ),
    ("[filters]", '[limits]\nwindow = "٢٢:00-06:00"\n[filters]', "limits.window must look like"),
    (
        "[filters]",
        '[report]\npath = "~nosuchuser/x"\n[filters]',
        "report.path names the home of a user that is not known",
    ),
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
        if owner == "TopicSettings" and field.name in ("retention_days", "replication") and name.startswith("consumer"):
            continue  # it is refused there
        assert re.search(rf"^(# )?{field.name} = ", text, re.MULTILINE), f"{owner}.{field.name}"
        found = re.search(rf"^{field.name} = (\S+)", optional, re.MULTILINE)
        if found and field.default not in (None, dataclasses.MISSING) and field.name != "backend":
            default = str(field.default).lower() if field.type == "bool" else str(field.default)
            assert found[1].strip('"') == default, f"{owner}.{field.name}"


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
    made = write_certificate(tmp_path)
    text = re.sub(r'"/etc/mysql/[a-z-]+key\.pem"', f'"{made.key}"', (ROOT / "profiles" / name).read_text())
    text = re.sub(r'"/etc/mysql/[a-z-]+\.pem"', f'"{made.cert}"', text)
    plain, _, fluvio = text.partition("# The same through Fluvio")
    loaded = load(profile(_switch_on(plain)))
    assert loaded.database.tls is not None and loaded.database.tls.key == str(made.key)
    assert loaded.database.password_env and loaded.database.unix_socket
    loaded = load(profile(plain[: plain.index("\n[topic]")] + _switch_on(fluvio)))
    assert (loaded.topic.backend, loaded.topic.endpoint) == ("fluvio", "127.0.0.1:9103")


def _switch_on(text: str) -> str:
    """Uncomment every key and table, except what excludes another."""
    text = re.sub(r"^(password = |# exclude_dbs).*$", "", text, flags=re.MULTILINE)
    return re.sub(r"^# (\w+ = |\[)", r"\1", text, flags=re.MULTILINE)


@pytest.mark.parametrize(
    "text",
    ["[" * 20_000, f"a = {'[' * 20_000}", f"a = {'{a=' * 20_000}", f"{'a.' * 20_000}a = 1", f"a = {'9' * 10_000}"],
)
@pytest.mark.parametrize("load", [load_producer, load_consumer, load_parity, load_topic])
def test_what_is_deep_or_large_is_no_profile(
    load: Callable[[Path], object], profile: Callable[[str], Path], text: str
) -> None:
    with pytest.raises(ProfileError, match=r"given\.toml") as caught:
        load(profile(text))
    assert len(str(caught.value)) < 500


def test_the_files_of_tls_are_tried(profile: Callable[[str], Path], tmp_path: Path) -> None:
    """What is no PEM, and a key that somebody would have to type a passphrase for."""

    def tls(**keys: Path) -> Path:
        lines = "\n".join(f'{key} = "{value}"' for key, value in keys.items())
        return profile(PRODUCER.replace("[filters]", f"[database.tls]\n{lines}\n[filters]"))

    made = write_certificate(tmp_path)
    assert load_producer(tls(ca=made.cert, cert=made.cert, key=made.key)).database.tls
    (tmp_path / "none.pem").write_text("hello")
    for keys in ({"ca": tmp_path / "none.pem"}, {"cert": made.key, "key": made.cert}):
        with pytest.raises(ProfileError, match=r"the files of database\.tls cannot be used"):
            load_producer(tls(**keys))
    made = write_certificate(tmp_path, b"secret")
    with pytest.raises(ProfileError, match="key has a passphrase"):
        load_producer(tls(cert=made.cert, key=made.key))


# any profile: the keys of all programs, and values of any type


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
    {field.name for kind in (ProducerProfile, ConsumerProfile, ParityProfile) for field, _ in _fields(kind)} - {"user"}
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
