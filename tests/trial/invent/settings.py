"""Settings of sessions that a binlog may carry, and some that it does not."""

from __future__ import annotations

from random import Random

STRICT = "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO"
SQL_MODES = (
    "", "", STRICT, "ALLOW_INVALID_DATES", "NO_AUTO_VALUE_ON_ZERO", "ANSI_QUOTES", "NO_BACKSLASH_ESCAPES",
    "PAD_CHAR_TO_FULL_LENGTH", "PIPES_AS_CONCAT", "IGNORE_SPACE", "REAL_AS_FLOAT", "TRADITIONAL", "ANSI",
    "TIME_TRUNCATE_FRACTIONAL", "NO_UNSIGNED_SUBTRACTION", "HIGH_NOT_PRECEDENCE", "STRICT_ALL_TABLES,ALLOW_INVALID_DATES",
)  # fmt: skip
#: setting, and the values it is given
VALUES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("sql_mode", tuple(f"'{mode}'" for mode in SQL_MODES)),
    ("time_zone", ("'+00:00'", "'+05:30'", "'-11:00'", "'+14:00'", "'SYSTEM'")),
    ("foreign_key_checks", ("0", "1")),
    ("unique_checks", ("0", "1")),
    ("autocommit", ("1", "1", "0")),
    # an ALTER that names no TIMESTAMP does not log it: with 0 a replica goes by what it was told last
    ("explicit_defaults_for_timestamp", ("1",)),
    ("default_collation_for_utf8mb4", ("utf8mb4_general_ci", "utf8mb4_0900_ai_ci")),
    ("collation_connection", ("utf8mb4_bin", "latin1_swedish_ci", "utf16_general_ci", "utf8mb4_de_pb_0900_as_cs")),
    ("collation_server", ("latin1_bin", "utf8mb4_0900_ai_ci")),
    ("sql_generate_invisible_primary_key", ("0", "1")),
    ("sql_quote_show_create", ("1", "0")),
    ("sql_auto_is_null", ("0", "1")),
    ("timestamp", ("1700000000.123456", "DEFAULT")),
    ("insert_id", ("500",)),
    ("auto_increment_increment", ("1", "3")),
    ("binlog_rows_query_log_events", ("0", "1")),
    ("transaction_isolation", ("'READ-COMMITTED'", "'REPEATABLE-READ'", "'SERIALIZABLE'")),
    ("lc_time_names", ("'de_DE'", "'en_US'")),
    ("innodb_strict_mode", ("0", "1")),
    ("sql_require_primary_key", ("0", "0", "1")),
    ("binlog_transaction_compression", ("0", "1")),
    ("show_create_table_verbosity", ("0", "1")),
    ("default_week_format", ("0", "3")),
    ("div_precision_increment", ("4", "9")),
)
#: those that a binlog does not tell
UNLOGGED = (
    "innodb_strict_mode",
    "default_week_format",
    "div_precision_increment",
    "sql_generate_invisible_primary_key",
)
NAMES = (
    "utf8mb4", "utf8mb4", "latin1", "gbk", "utf8mb3", "binary", "cp1251", "utf8mb4 COLLATE utf8mb4_0900_bin",
    "utf8mb4 COLLATE utf8mb4_0900_as_cs", "utf8mb4 COLLATE utf8mb4_ja_0900_as_cs",
)  # fmt: skip


def setting(random: Random) -> str:
    """A statement that changes one setting of a session."""
    if random.random() < 0.2:
        return f"SET NAMES {random.choice(NAMES)}"
    name, values = random.choice(VALUES)
    return f"SET SESSION {name} = {random.choice(values)}" if name != "insert_id" else f"SET {name} = {values[0]}"
