"""Tells whether a view or routine can be read in its client's character set: where the leader's own words are ASCII."""

from __future__ import annotations

import pytest

from shared.statements.stored_text import in_one_charset

VIEW = b"CREATE ALGORITHM=UNDEFINED DEFINER=`root`@`localhost` SQL SECURITY DEFINER VIEW `v`"
FUNCTION = b"CREATE DEFINER=`root`@`localhost` FUNCTION `f`"


@pytest.mark.parametrize(
    "sql",
    [
        VIEW + b" AS SELECT '\xe9' AS `\xe9`",
        VIEW + b"(`a`, `as`) AS SELECT '\xe9', 1",
        FUNCTION + b"() RETURNS varchar(20) CHARSET latin1 COLLATE latin1_bin\n    DETERMINISTIC\nRETURN '\xe9'",
        FUNCTION + b"(`\xe9` DECIMAL(10,2), `)` INT) RETURNS decimal(10,2) unsigned\nRETURN `\xe9`",
        FUNCTION
        + b"(a ENUM('(','\xe9')) RETURNS int\n READS SQL DATA\n SQL SECURITY INVOKER\n COMMENT 'a'\n`\xe9`: BEGIN END",
        b"CREATE DEFINER=`a b`@`%` PROCEDURE IF NOT EXISTS `d`.`p`()\n    NO SQL\nSELECT '\xe9'",
    ],
)
def test_the_client_wrote_the_rest(sql: bytes) -> None:
    assert in_one_charset(sql, 0, "latin1")


@pytest.mark.parametrize(
    "sql",
    [
        VIEW[:-1] + b"\xc3\xa9` AS SELECT 1",
        VIEW + b"(`\xc3\xa9`) AS SELECT 1",
        VIEW.replace(b"root", b"\xc3\xa9") + b" AS SELECT 1",
        FUNCTION[:-1] + b"\xc3\xa9`() RETURNS int\nRETURN 1",
        FUNCTION + b"() RETURNS enum('\xc3\xa9') CHARSET latin1\nRETURN 1",
        FUNCTION + b"() RETURNS int\n    DETERMINISTIC\n    COMMENT '\xc3\xa9'\nRETURN '\xe9'",
        FUNCTION + b"() RETURNS int\n    COMMENT '\xc3\xa9'",
        b"CREATE LIBRARY `l` LANGUAGE javascript AS '\xc3\xa9'",
        FUNCTION + b"(`\xe9",
    ],
)
def test_the_leader_wrote_letters_of_its_own(sql: bytes) -> None:
    assert not in_one_charset(sql, 0, "latin1")


def test_parameters_are_the_clients() -> None:
    """The second byte of a letter of gbk may be that of a backquote."""
    sql = FUNCTION + b"(`\x95\x60` INT) RETURNS int\nRETURN `\x95\x60`"
    assert in_one_charset(sql, 0, "gbk")
    assert not in_one_charset(sql, 0, "latin1")
