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
