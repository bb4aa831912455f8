"""What is wrong in a profile of cdc-consumer is named by key and file."""

from __future__ import annotations

from pathlib import Path

import pytest
from kit.profiles import CONSUMER, written

from cdc_consumer.profile import load_consumer
from shared.errors import ProfileError

#: what to replace in CONSUMER, by what, and what the error must say besides the file
BAD_CONSUMERS = [
    ("[database]", 'mysql_resource_name = "mysql-srv1"\n[database]', "is it the profile of another program?"),
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
    (
        'user = "fluvio"',
        'user = "fluvio"\nunix_socket = "/run/s"\nport = 3306',
        "database.port and database.unix_socket exclude each other",
    ),
]


@pytest.mark.parametrize(("old", "new", "told"), BAD_CONSUMERS, ids=[told for _, _, told in BAD_CONSUMERS])
def test_a_bad_consumer_profile_names_key_and_file(tmp_path: Path, old: str, new: str, told: str) -> None:
    path = written(tmp_path, CONSUMER.replace(old, new, 1))
    with pytest.raises(ProfileError) as caught:
        load_consumer(path)
    assert told in str(caught.value)
    assert str(path) in str(caught.value)
