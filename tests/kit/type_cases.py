"""Every column type and its odd values. Ids are the catalogue's."""

from __future__ import annotations

from typing import NamedTuple

from docker.local.mysql_servers import Server

#: what the writing session allows, so that every odd value gets in
SESSION = "SET SESSION sql_mode = 'ALLOW_INVALID_DATES', time_zone = '+00:00'"


class Case(NamedTuple):
    id: str
    type: str
    #: SQL expressions of the values
    values: list[str]
    #: expression over the column c that shows its exact bytes
    exact: str = "HEX(CAST(c AS BINARY))"


def integers(name: str, bits: int) -> Case:
    return Case(f"T1_{name}", name, [str(-(1 << bits - 1)), "-1", "0", "1", str((1 << bits - 1) - 1)])


def unsigned(name: str, bits: int) -> Case:
    return Case(f"T1_{name}_unsigned", f"{name} UNSIGNED", ["0", "1", str(1 << bits - 1), str((1 << bits) - 1)])


INTEGERS = [("TINYINT", 8), ("SMALLINT", 16), ("MEDIUMINT", 24), ("INT", 32), ("BIGINT", 64)]

CASES = [
    *(integers(*pair) for pair in INTEGERS),
    *(unsigned(*pair) for pair in INTEGERS),
    Case("T1_zerofill", "INT(5) ZEROFILL", ["0", "7", "123456"]),
    Case("T1_bool", "BOOL", ["TRUE", "FALSE", "127"]),
    Case("T2_bit1", "BIT(1)", ["0", "1"], "HEX(c + 0)"),
    Case("T2_bit9", "BIT(9)", ["0", "b'101010101'", "511"], "HEX(c + 0)"),
    Case("T2_bit64", "BIT(64)", ["0", "18446744073709551615", "1 << 63"], "HEX(c + 0)"),
    Case("T3_decimal65_0", "DECIMAL(65,0)", ["0", "-1", "REPEAT('9', 65)", "CONCAT('-', REPEAT('9', 65))"]),
    Case("T3_decimal65_30", "DECIMAL(65,30)", ["0", "-1e-30", "1e-30", "CONCAT(REPEAT('9', 35), '.', REPEAT('9', 30))"]),
    Case("T3_decimal30_30", "DECIMAL(30,30)", ["0", "-1e-30", "0.000000001000000000000000000001", "-0.5"]),
    Case("T3_decimal10_2", "DECIMAL(10,2)", ["0", "-0.01", "0.1", "99999999.99", "-99999999.99", "12345678.9"]),
    Case("T3_decimal1_0", "DECIMAL(1,0)", ["0", "9", "-9"]),
    Case("T3_decimal18_9", "DECIMAL(18,9)", ["0.000000001", "-999999999.999999999", "1"]),
    Case("T3_decimal_unsigned", "DECIMAL(12,4) UNSIGNED", ["0", "12345678.9012"]),
    Case("T4_float", "FLOAT", ["0", "0.1", "-0.1", "1e-45", "3.4028234e38", "16777217", "-0e0"], "HEX(POINT(c, 0))"),
    Case("T4_float7_4", "FLOAT(7,4)", ["999.9999", "-0.0001", "0"], "HEX(POINT(c, 0))"),
    Case(
        "T5_double", "DOUBLE", ["0", "-0e0", "0.1", "5e-324", "1.7976931348623157e308", "1e16", "-123.456"],
        "HEX(POINT(c, 0))",
    ),
    Case("T6_char", "CHAR(5)", ["''", "'a'", "'é漢😀'", "'x'''", r"'\\n\n\0'"]),
    Case("T6_varchar", "VARCHAR(300)", ["''", "' '", "'a  '", r"'\0\Z\r\n\t\"''\\%_'", "REPEAT('漢', 300)"]),
    Case("T6_utf8mb3", "VARCHAR(20) CHARACTER SET utf8mb3", ["'é漢'", "'a '"]),
    Case("T6_ascii", "VARCHAR(20) CHARACTER SET ascii", ["'abc'", "''"]),
    Case("T6_text", "MEDIUMTEXT", ["''", "REPEAT('a\\'b', 50000)", "'{\"json\":1}'"]),
    Case("T6_tinytext", "TINYTEXT", ["'x'", "REPEAT('y', 255)"]),
    Case("T6_longtext", "LONGTEXT", ["REPEAT('long', 500000)"]),
    Case("T7_latin1", "VARCHAR(9) CHARACTER SET latin1", ["x'818D8F909D'", "'é'", "x'FF00'"]),
    Case("T8_utf16", "VARCHAR(9) CHARACTER SET utf16", ["'aé漢😀'", "''"]),
    Case("T9_utf32", "TEXT CHARACTER SET utf32", ["'aé漢😀'"]),
    Case("T10_ucs2", "CHAR(9) CHARACTER SET ucs2", ["'aé漢'"]),
    Case("T11_gbk", "VARCHAR(9) CHARACTER SET gbk", ["x'fea0'", "'注释'", "x'D75C'"]),
    Case("T13_sjis", "VARCHAR(9) CHARACTER SET sjis", ["x'5C'", "x'815F'", "'漢'"]),
    Case("T14_binary", "BINARY(5)", ["x'6100'", "x'0000000000'", "'abcde'", "''"], "HEX(c)"),
    Case("T15_varbinary", "VARBINARY(300)", ["''", "x'00'", "x'FF27225C0A'", "REPEAT(x'00FF', 150)"], "HEX(c)"),
    Case("T16_tinyblob", "TINYBLOB", ["''", "x'00'"], "HEX(c)"),
    Case("T16_longblob", "LONGBLOB", ["''", "REPEAT(x'00275C22', 1000000)"], "SHA2(c, 256)"),
    Case("T17_enum", "ENUM('a','','b')", ["0", "1", "2", "3"], "c + 0"),
    Case("T17_enum300", f"ENUM({','.join(repr(f'm{i}') for i in range(300))})", ["1", "256", "300"], "c + 0"),
    Case("T18_enum_latin1", "ENUM('é','ü') CHARACTER SET latin1", ["1", "2"], "c + 0"),
    Case("T19_set_utf16", "SET('a','b') CHARACTER SET utf16", ["0", "1", "3"], "c + 0"),
    Case("T20_enum_long", f"ENUM('{'漢' * 60}','b')", ["1", "2"], "c + 0"),
    Case("T21_set", "SET('x','y','z')", ["0", "5", "7"], "c + 0"),
    Case("T21_set64", f"SET({','.join(repr(f's{i}') for i in range(64))})", ["0", "1 << 63", "18446744073709551615"], "c + 0"),
    Case("T22_set_empty_member", "SET('a','')", ["0", "1", "2", "3"], "c + 0"),
    Case("T23_date", "DATE", ["'0000-00-00'", "'2024-00-00'", "'2024-05-00'", "'0000-01-01'", "'9999-12-31'"]),
    Case("T24_date_invalid", "DATE", ["'2024-02-31'"]),
    Case("T25_datetime", "DATETIME(3)", ["'0000-00-00'", "'2024-00-00 10:00:00.5'", "'2024-02-31 23:59:59.999'"]),
    Case("T26_timestamp_zero", "TIMESTAMP NULL", ["'0000-00-00'"]),
    Case("T26_timestamp6_zero", "TIMESTAMP(6) NULL", ["'0000-00-00'", "'1970-01-01 00:00:01.000001'"]),
    *(
        Case(f"T27_datetime{f}", f"DATETIME({f})", ["'9999-12-31 23:59:59'", "'2024-02-29 01:02:03.1234567'"])
        for f in range(7)
    ),
    *(Case(f"T27_timestamp{f}", f"TIMESTAMP({f}) NULL", ["'2038-01-19 03:14:07.123456'"]) for f in range(7)),
    *(
        Case(f"T28_time{f}", f"TIME({f})", ["'-00:00:01.1'", "'-838:59:58.999999'", "'-00:00:00.5'", "'12:34:56.654321'"])
        for f in range(7)
    ),
    Case("T29_time", "TIME", ["'838:59:59'", "'-838:59:59'", "'00:00:00'"]),
    Case("T30_year", "YEAR", ["0", "1901", "2155"]),
    Case("T41_geometry", "GEOMETRY", ["ST_GeomFromText('POINT(1 2)')", "ST_GeomFromText('GEOMETRYCOLLECTION EMPTY')"]),
    Case("T41_point_4326", "POINT", ["ST_GeomFromText('POINT(48 16)', 4326)"]),
    Case("T42_vector", "VECTOR(3)", ["TO_VECTOR('[1,-2.5,3e10]')", "TO_VECTOR('[0,0,0]')"], "HEX(c)"),
]  # fmt: skip

JSONS = Case(
    "T31_json", "JSON",
    [
        "'null'", "'1'", "'-0.0'", "'1.0'", "'1e300'", "'\"a\"'", "'[]'", "'{}'", "'true'", r"""'{"\\u0000": "\\u0000"}'""",
        "JSON_ARRAY(1.10)", "JSON_ARRAY(CAST('2024-01-02' AS DATE), CAST('0000-00-00' AS DATE))",
        "JSON_ARRAY(CAST('25:00:00' AS TIME), CAST('-01:02:03.5' AS TIME(6)))", "JSON_ARRAY(TIMESTAMP'2024-01-02 03:04:05.6')",
        "JSON_ARRAY(CAST(5 AS UNSIGNED), 5, 4294967296, CAST(4294967296 AS UNSIGNED), 9223372036854775807)",
        "'[18446744073709551615, -9223372036854775808, 18446744073709551616]'", "JSON_ARRAY(x'00FF')",
        "JSON_OBJECT('a', 1.50, 'b c', JSON_ARRAY(2.5, JSON_OBJECT('\"q', CAST(7 AS UNSIGNED))), 'é', '漢😀')",
        "(SELECT JSON_ARRAYAGG(REPEAT('x', 100)) FROM information_schema.COLLATIONS)",
        "(SELECT JSON_OBJECTAGG(CONCAT('key', ID), JSON_ARRAY(ID, ID / 3)) FROM information_schema.COLLATIONS)",
    ],
    "CONCAT(CAST(c AS CHAR), JSON_TYPE(c), IFNULL(JSON_TYPE(JSON_EXTRACT(c, '$[0]')), ''),"
    " IFNULL(JSON_TYPE(JSON_EXTRACT(c, '$[1]')), ''), IFNULL(JSON_TYPE(JSON_EXTRACT(c, '$[2]')), ''))",
)  # fmt: skip


def write_all(leader: Server, database: str, keyed: bool) -> None:
    """A table for each case, in which every value is inserted, updated from and to, and deleted."""
    with leader.connect() as connection, connection.cursor() as cursor:
        cursor.execute(SESSION)
        cursor.execute(f"CREATE DATABASE {database}")
        cursor.execute(f"USE {database}")
        for case in (*CASES, JSONS):
            key = "PRIMARY KEY" if keyed else ""
            # the sign of a number behind the column is told in the same bits as the column's own
            cursor.execute(f"CREATE TABLE {case.id} (id INT {key}, c {case.type}, d INT)")
            # twins that are updated to and from every value, and deleted; and some whose value stays in an update
            for first in (0, 1000, 2000):
                rows = [f"({first + number}, {value}, -1)" for number, value in enumerate([*case.values, "NULL"])]
                cursor.execute(f"INSERT INTO {case.id} VALUES {', '.join(rows)}")
            cursor.execute(f"UPDATE {case.id} SET d = -2 WHERE id >= 1000")
            for number, value in enumerate([*case.values, "NULL"]):
                cursor.execute(f"UPDATE {case.id} SET c = {value} WHERE id DIV 1000 = 1 AND id <> {1000 + number}")
            cursor.execute(f"UPDATE {case.id} SET c = NULL WHERE id = 1000")
            cursor.execute(f"DELETE FROM {case.id} WHERE id DIV 1000 = 1")
