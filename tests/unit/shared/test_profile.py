"""Profiles: what is wrong is named by key and file, and the profiles we ship say the truth about every key."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from kit.certificates import write_certificate
from kit.profiles import CONSUMER, PRODUCER, UUID, written

from cdc_consumer.profile import load_consumer
from cdc_producer.profile import load_producer
from shared.errors import ProfileError


@pytest.fixture
def profile(tmp_path: Path) -> Callable[[str], Path]:
    return partial(written, tmp_path)


def test_the_least_a_profile_needs(profile: Callable[[str], Path]) -> None:
    producer = load_producer(profile(PRODUCER))
    assert str(producer.database) == "127.0.0.1:3306"
    assert (producer.database.start, producer.database.heartbeat_seconds) == ("earliest", 5.0)
    assert (producer.topic.backend, producer.topic.retention_days) == ("embedded", None)
    consumer = load_consumer(profile(CONSUMER))
    assert (consumer.database.system_database, consumer.filters.include_dbs) == ("fluvio_cdc", ("flvDb",))
    assert (consumer.apply.rows, consumer.apply.workers, consumer.apply.order) == ("auto", 4, "leader")


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("workers = 0", "apply.workers must be 1 to 16, not 0"),
        ("workers = 17", "apply.workers must be 1 to 16, not 17"),
        ('order = "any"', "apply.order must be"),
        ('rows = "json"', "apply.rows must be"),
    ],
)
def test_how_rows_are_applied(profile: Callable[[str], Path], key: str, told: str) -> None:
    with pytest.raises(ProfileError, match=told):
        load_consumer(profile(f"{CONSUMER}[apply]\n{key}\n"))


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
    ('include_dbs = ["flvDb"]', 'include_dbs = "flvDb"', "filters.include_dbs must be a list of names"),
    ('include_dbs = ["flvDb"]', "include_dbs = [1]", "filters.include_dbs must be a list of names"),
    ('include_dbs = ["flvDb"]', 'include_dbs = [""]', "filters.include_dbs must be a list of names"),
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
    (
        'name = "events"',
        'name = "events"\nbackend = "fluvio"\npath = "~/x"',
        'topic.path is for topic.backend = "embedded"',
    ),
    (
        'user = "fluvio"',
        'user = "fluvio"\nunix_socket = "/run/s"\nhost = "127.0.0.1"',
        "database.host and database.unix_socket exclude each other",
    ),
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
