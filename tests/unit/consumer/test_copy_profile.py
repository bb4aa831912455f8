"""The profile of cdc-copy: what is shipped is whole, and what is wrong is named."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest
from kit.programs import ROOT

from cdc_consumer.copy.profile import CopyLimits, CopySettings, load_copy
from shared.errors import ProfileError

SHIPPED = ROOT / "profiles" / "copy_profile.toml"


def test_the_copy_profile_we_ship_names_every_setting_and_its_default() -> None:
    shipped = load_copy(SHIPPED)
    assert (shipped.topic.name, shipped.consumer().database.port) == ("rust-mysql-cdc", 3090)
    told = dict(re.findall(r"^# (\w+) = (\S+)", SHIPPED.read_text(), re.MULTILINE))
    for field in (*dataclasses.fields(CopySettings), *dataclasses.fields(CopyLimits)):
        assert field.name in told, field.name
        if field.default is not None:
            assert told[field.name].strip('"') == str(field.default).lower(), field.name


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ("[copy]\nrange_rows = 5", "copy.range_rows must be 100 to 10000000, not 5"),
        ('[copy]\nmethod = "files"', 'copy.method must be "rows" or "clone", not \'files\''),
        ('[copy]\nclone_from = "leader"', 'copy.clone_from must look like "host:port"'),
        ("[copy]\nhold_dll = true", "unknown key copy.hold_dll"),
        ("[limits]\nconnections = 0", "limits.connections must be 1 to 64, not 0"),
        ('[limits]\nwindow = "25:00-06:00"', "limits.window must look like"),
        ("[limits]\nleader_threads = -1", "limits.leader_threads must be positive"),
    ],
)
def test_a_bad_copy_profile_names_key_and_file(tmp_path: Path, lines: str, told: str) -> None:
    path = tmp_path / "copy.toml"
    path.write_text(f"{SHIPPED.read_text()}\n{lines}\n")
    with pytest.raises(ProfileError) as caught:
        load_copy(path)
    assert told in str(caught.value) and str(path) in str(caught.value)


def test_some_topics_of_a_producer_are_no_copy(tmp_path: Path) -> None:
    path = tmp_path / "copy.toml"
    path.write_text(SHIPPED.read_text().replace('name = "rust-mysql-cdc"', 'name = "rust-mysql-cdc"\nnames = ["one"]'))
    with pytest.raises(ProfileError, match=r"topic\.names is not for a copy"):
        load_copy(path)
