"""Logging in to servers that are not what they should be."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from kit.certificates import write_certificate
from kit.rogue import Rogue, server_that_drips, server_that_says

from shared import mysql
from shared.mysql import MySQLError, connect, error_text, is_link_error, rows
from shared.profile import Database, DatabaseTls

PASSWORD = "a password that nobody may have"
PLUGINS = ("mysql_clear_password", "dialog", "sha256_password", "caching_sha2_password", "mysql_old_password")


def refusal(rogue: Rogue, tls: DatabaseTls | None, host: str = Rogue.host) -> str:
    with pytest.raises(MySQLError) as caught:
        connect(Database("fluvio", host, rogue.port, password=PASSWORD, tls=tls))
    return error_text(caught.value)


@pytest.mark.parametrize("tls", [None, DatabaseTls(mode="off")], ids=["by default", "off"])
@pytest.mark.parametrize("plugin", PLUGINS)
def test_a_server_that_asks_for_the_password_does_not_get_it(plugin: str, tls: DatabaseTls | None) -> None:
    with Rogue(plugin) as rogue:
        assert "asks for the password itself and has not proved who it is" in refusal(rogue, tls)
    assert PASSWORD.encode() not in rogue.heard


@pytest.mark.parametrize("plugin", PLUGINS)
def test_it_does_not_get_it_through_its_own_encryption(plugin: str, tmp_path: Path) -> None:
    """Nobody is verified, so the certificate may be anybody's; also when it greets with what it wants."""
    for tls in (None, DatabaseTls(mode="required")):
        for greets_with in ("mysql_native_password", plugin):
            with Rogue(plugin, greets_with=greets_with, tls=write_certificate(tmp_path)) as rogue:
                refusal(rogue, tls)
            assert PASSWORD.encode() not in rogue.heard


def test_encryption_that_is_required_is_not_given_up() -> None:
    with Rogue("mysql_clear_password") as rogue:
        assert "SSL is required" in refusal(rogue, DatabaseTls(mode="required", send_password_unverified=True))
    assert PASSWORD.encode() not in rogue.heard


def test_a_certificate_that_is_not_the_one_expected(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    expected, shown = write_certificate(tmp_path), write_certificate(tmp_path / "other")
    with Rogue("mysql_clear_password", tls=shown) as rogue:
        assert "certificate" in refusal(rogue, DatabaseTls(mode="verify-ca", ca=str(expected.cert)))
    assert PASSWORD.encode() not in rogue.heard


@pytest.mark.parametrize("plugin", PLUGINS[:4])
def test_who_says_so_gives_it_away(plugin: str) -> None:
    """Which also shows that this server can get it: in words for a server elsewhere, and on this machine."""
    for tls, host in (
        (DatabaseTls(mode="off", send_password_unverified=True), Rogue.host),
        (DatabaseTls(mode="off"), "127.0.0.1"),
    ):
        with Rogue(plugin) as rogue:
            refusal(rogue, tls, host)
        assert PASSWORD.encode() in rogue.heard


def test_a_server_that_accepts_and_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mysql, "CONNECT_SECONDS", 0.5)
    began = time.monotonic()
    with server_that_says(b"") as port, pytest.raises(MySQLError, match="did not answer within") as caught:
        connect(Database("fluvio", port=port))
    assert is_link_error(caught.value)
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    "words", [b"SSH-2.0-OpenSSH_9.6\r\n", b"\x03\0\0\0\x0a8\0", b"\x05\0\0\0\x0aabc\0", b"\x01\0\0\0\x0a" + bytes(64)]
)
def test_a_server_that_speaks_something_else(words: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mysql, "CONNECT_SECONDS", 0.5)
    with server_that_says(words) as port, pytest.raises(MySQLError):
        connect(Database("fluvio", port=port))


#: what a server says to a client that it lets in, and that then asks it something
GREETING = (
    b"\x0a8.0.46\0" + bytes(4) + b"12345678\0" + b"\xff\xf7\xff\2\0\x0f\0\x15" + bytes(10) + b"123456789012\0"
    b"mysql_native_password\0"
)


def packets(*payloads: tuple[int, bytes]) -> bytes:
    return b"".join(len(data).to_bytes(3, "little") + bytes([number]) + data for number, data in payloads)


OK = b"\0\0\0\2\0\0\0"


def test_a_login_that_drips_has_one_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each byte comes in time, and the login never."""
    monkeypatch.setattr(mysql, "CONNECT_SECONDS", 0.6)
    began = time.monotonic()
    words = r"did not answer within 0\.6 seconds"
    with server_that_drips(packets((0, GREETING)), 0.1) as port, pytest.raises(MySQLError, match=words) as caught:
        connect(Database("fluvio", port=port))
    assert is_link_error(caught.value)
    assert time.monotonic() - began < 6


def test_an_answer_that_drips_has_one_deadline() -> None:
    let_in = packets((0, GREETING), (2, OK), (1, OK), (1, OK))
    with server_that_drips(packets((1, bytes(200))), 0.1, at_once=let_in) as port:
        connection = connect(Database("fluvio", port=port), read_timeout=0.6)
        began = time.monotonic()
        with pytest.raises(MySQLError, match=r"not whole within 0\.6 seconds") as caught:
            rows(connection, "SELECT 1")
    assert is_link_error(caught.value)
    assert time.monotonic() - began < 6
