"""Which follower's column keeps the values of which leader's column."""

from __future__ import annotations

import pytest

from cdc_consumer.sql.column_types import stores


@pytest.mark.parametrize(
    ("follower", "leader"),
    [
        ("int", "int"),
        ("bigint", "int unsigned"),
        ("int(10) unsigned zerofill", "int"),
        ("varchar(80)", "varchar(20)"),
        ("varchar(80)", "char(20)"),
        ("text", "varchar(20)"),
        ("longtext", "text"),
        ("datetime(6)", "datetime(3)"),
        ("datetime(6)", "datetime"),
        ("decimal(12,4)", "decimal(10,2)"),
        ("decimal(10,2) unsigned", "decimal(10,2)"),
        ("double", "float"),
        ("float(7,4)", "float"),  # the binlog does not tell that the leader's is FLOAT(7,4)
        ("double(10,2)", "double"),
        ("enum('a','b','c')", "enum('a','b')"),
        ("set('a)','b''','c')", "set('a)','b''')"),
        ("varbinary(20)", "binary(16)"),
        ("longblob", "varbinary(20)"),
        ("geometry", "point"),
        ("bit(10)", "bit(1)"),
        ("vector(5)", "vector(3)"),
        ("anything", "something"),
    ],
)
def test_kept(follower: str, leader: str) -> None:
    assert stores(follower, leader)


@pytest.mark.parametrize(
    ("follower", "leader"),
    [
        ("varchar(20)", "int"),
        ("decimal(10,0)", "int"),
        ("int", "decimal(10,2)"),
        ("decimal(10,1)", "decimal(10,2)"),
        ("decimal(10)", "decimal(10,2)"),
        ("datetime", "datetime(6)"),
        ("time(2)", "time(3)"),
        ("timestamp(6)", "datetime(6)"),
        ("date", "datetime"),
        ("datetime", "date"),
        ("float", "double"),
        ("float", "int"),
        ("enum('b','a')", "enum('a','b')"),
        ("enum('a')", "enum('a','b')"),
        ("varchar(5)", "enum('a','b')"),
        ("set('a','b')", "enum('a','b')"),
        ("char(20)", "varchar(20)"),
        ("varchar(10)", "varchar(20)"),
        ("varchar(10)", "text"),
        ("text", "longtext"),
        ("varbinary(20)", "varchar(20)"),
        ("binary(20)", "binary(16)"),
        ("binary(20)", "varbinary(20)"),
        ("longtext", "json"),
        ("json", "longtext"),
        ("point", "geometry"),
        ("polygon", "point"),
        ("blob", "geometry"),
        ("year", "int"),
        ("int", "year"),
    ],
)
def test_altered(follower: str, leader: str) -> None:
    assert not stores(follower, leader)
