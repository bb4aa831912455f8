"""What is written on the leader: a table of ten columns, by statements of many rows or in transactions of one."""

from __future__ import annotations

from docker.local.mysql_servers import Server

DATABASE = "bench"
#: rows of one statement
STATEMENT_ROWS = 1000
COLUMNS = """
    id BIGINT NOT NULL, quantity INT NOT NULL, state ENUM('new','paid','sent','returned') NOT NULL,
    price DECIMAL(12,2) NOT NULL, weight DOUBLE NOT NULL, name VARCHAR(80) CHARACTER SET utf8mb4 NOT NULL,
    note VARCHAR(80) CHARACTER SET utf8mb4 NULL, ordered DATETIME NOT NULL, changed TIMESTAMP(6) NOT NULL,
    active TINYINT NOT NULL"""
#: the values of row n: every name has letters beyond ASCII, every third note is NULL
VALUES = """
    n, n * 7919 % 1000003 - 500000, 1 + n % 4, n * 31 % 100000000 / 100, n / 7e0,
    CONCAT('Müller & Søn № ', n, REPEAT('.', n % 20)), IF(n % 3, CONCAT('it''s note ', n), NULL),
    '2020-01-01' + INTERVAL n * 37 % 100000000 SECOND,
    FROM_UNIXTIME(1600000000 + n % 90000000 + n % 1000000 / 1e6), n % 2"""

#: all types, JSON and BLOB among them: columns and the values of row n
WIDE_COLUMNS = """
    id BIGINT NOT NULL, a TINYINT, b SMALLINT UNSIGNED, c MEDIUMINT, d INT, e DECIMAL(20,6), f FLOAT, g DOUBLE,
    h BIT(12), i DATE, k TIME(3), l DATETIME(6), m TIMESTAMP(2) NULL, n YEAR, o CHAR(9), p VARCHAR(300),
    q VARBINARY(20), r BLOB, s ENUM('x','y'), t JSON, PRIMARY KEY (id)"""
WIDE_VALUES = """
    n, n % 100, n % 60000, n % 8000000, n, n * 31 % 100000000 / 1e4, n / 7, n / 7e0, n % 4096,
    '2020-01-01' + INTERVAL n % 3000 DAY, SEC_TO_TIME(n % 80000 + 0.123), '2020-01-01' + INTERVAL n * 37 SECOND,
    FROM_UNIXTIME(1600000000 + n % 90000000 + n % 100 / 100), 1950 + n % 100, CONCAT('c', n % 1000),
    CONCAT('Müller ', REPEAT('x', n % 50)), LEFT(UNHEX(SHA2(n, 256)), 20), REPEAT(UNHEX(SHA2(n, 256)), 4), 1 + n % 2,
    JSON_OBJECT('id', n, 'name', CONCAT('n', n), 'tags', JSON_ARRAY('a', 'b', n % 7), 'price', n / 4e0, 'ok', n % 2 = 0,
                'sub', JSON_OBJECT('x', n % 10, 'y', NULL))"""

SETUP = (
    f"CREATE DATABASE {DATABASE}",
    f"USE {DATABASE}",
    "CREATE TABLE number (n INT PRIMARY KEY)",
    f"""INSERT INTO number WITH RECURSIVE up (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM up
        WHERE n < {STATEMENT_ROWS - 1}) SELECT * FROM up""",
    # each INSERT commits by itself, without the way from a client to the server and back
    f"""CREATE PROCEDURE single_rows (first INT, last INT)
        BEGIN
          DECLARE n INT DEFAULT first;
          WHILE n < last DO
            INSERT INTO orders SELECT {VALUES};
            SET n = n + 1;
          END WHILE;
        END""",
    """CREATE PROCEDURE in_turn (transactions INT, name VARCHAR(9), tables INT)
        BEGIN
          DECLARE n INT DEFAULT 0;
          WHILE n < transactions DO
            SET @sql = CONCAT('INSERT INTO ', name, n % tables, ' (i, s) VALUES (', n, ', ''row'')');
            PREPARE statement FROM @sql;
            EXECUTE statement;
            SET n = n + 1;
          END WHILE;
        END""",
)


def prepare(leader: Server) -> None:
    """Create the database and what writes the workloads."""
    leader.execute(*SETUP)


def create_table(leader: Server, *, key: bool = True) -> None:
    """Create the table `orders` anew, empty."""
    columns = COLUMNS + (", PRIMARY KEY (id)" if key else "")
    leader.execute("DROP TABLE IF EXISTS orders", f"CREATE TABLE orders ({columns})", database=DATABASE)


def insert_statements(leader: Server, rows: int, *, one_transaction: bool = False) -> None:
    """Insert rows 0.. with statements of 1,000, each a transaction or all in one."""
    numbers = "(SELECT {start} + n AS n FROM number WHERE n < {size}) AS numbers"
    _by_statement(leader, rows, f"INSERT INTO orders SELECT {VALUES} FROM {numbers}", one_transaction)


def insert_single_rows(leader: Server, rows: int) -> None:
    """Insert rows 0.. with a transaction each."""
    leader.execute(f"CALL single_rows(0, {rows})", database=DATABASE)


def update(leader: Server, rows: int) -> None:
    """Change three columns of rows 0.., with statements of 1,000."""
    changes = "quantity = quantity + 1, note = CONCAT('updated ', id), active = 1 - active"
    _by_statement(leader, rows, f"UPDATE orders SET {changes} WHERE id >= {{start}} AND id < {{start}} + {{size}}")


def delete(leader: Server, rows: int) -> None:
    """Delete rows 0.., with statements of 1,000."""
    _by_statement(leader, rows, "DELETE FROM orders WHERE id >= {start} AND id < {start} + {size}")


def _by_statement(leader: Server, rows: int, statement: str, one_transaction: bool = False) -> None:
    with leader.connect(DATABASE, autocommit=not one_transaction) as connection, connection.cursor() as cursor:
        for start in range(0, rows, STATEMENT_ROWS):
            cursor.execute(statement.format(start=start, size=min(STATEMENT_ROWS, rows - start)))
        connection.commit()


def insert_wide(leader: Server, rows: int) -> None:
    """Insert rows 0.. into a new table `wide` of 20 columns, with statements of 1,000."""
    leader.execute("DROP TABLE IF EXISTS wide", f"CREATE TABLE wide ({WIDE_COLUMNS})", database=DATABASE)
    numbers = "(SELECT {start} + n AS n FROM number WHERE n < {size}) AS numbers"
    _by_statement(leader, rows, f"INSERT INTO wide SELECT {WIDE_VALUES} FROM {numbers}")


def create_tables(leader: Server, name: str, count: int, *, equal: bool) -> None:
    """Create the tables `name`0 to `name`N that are missing, with equal columns or with different ones."""
    named = f"TABLE_SCHEMA = '{DATABASE}' AND TABLE_NAME LIKE '{name}%'"
    found = int(leader.value(f"SELECT COUNT(*) FROM information_schema.TABLES WHERE {named}"))
    with leader.connect(DATABASE) as connection, connection.cursor() as cursor:
        for number in range(found, count):
            size = 20 if equal else 20 + number
            columns = f"n INT PRIMARY KEY AUTO_INCREMENT, i INT, s VARCHAR({size})"
            cursor.execute(f"CREATE TABLE {name}{number} ({columns})")


def insert_in_turn(leader: Server, transactions: int, name: str, tables: int) -> None:
    """Insert a row with each transaction, into so many tables of that name in turn."""
    leader.execute(f"CALL in_turn({transactions}, '{name}', {tables})", database=DATABASE)
