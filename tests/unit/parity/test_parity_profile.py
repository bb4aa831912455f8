"""What is wrong in a profile of cdc-parity is named by key and file."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest
from kit.profiles import PARITY, written
from kit.programs import ROOT

from cdc_consumer.parity.profile import Limits, load_parity
from shared.errors import ProfileError

#: what to replace in PARITY, by what, and what the error must say besides the file
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
def test_a_bad_parity_profile_names_key_and_file(tmp_path: Path, old: str, new: str, told: str) -> None:
    path = written(tmp_path, PARITY.replace(old, new, 1))
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
