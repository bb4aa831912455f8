"""Says which tables a statement writes, for the topics it goes to: our own reading, and sqlglot's beside it."""

from __future__ import annotations

import logging

from shared.errors import UnsupportedError
from shared.statements.heads import read_statement, shown_sql
from shared.statements.trees import Table, tables_in_tree

logger = logging.getLogger(__name__)


def touched_tables(sql: bytes, sql_mode: int, database: str, charset: str, folds: bool) -> tuple[Table, ...] | None:
    """Return database and name of each table or view that a statement writes.

    `database` is the session's, `charset` the name of its client's character set, and a leader that `folds` names
    stores them in lower case. None for a statement about whole databases, and where the two readings differ or ours
    does not tell: such a statement goes to all topics. Where sqlglot has no tree, ours counts alone.
    """
    try:
        statement = read_statement(sql, sql_mode, database, charset).folded(folds)
    except UnsupportedError as error:
        logger.warning("goes to all topics: %s: %s", shown_sql(sql), error)
        return None
    if statement.kind == "DATABASE":
        return None
    ours = statement.tables
    tree = tables_in_tree(sql.decode(errors="replace"), sql_mode, database) if ours else None
    if tree is not None and folds:
        tree = frozenset((home.lower(), name.lower()) for home, name in tree)
    if tree is not None and tree != set(ours):
        logger.warning(
            "goes to all topics: %s: it writes %s as we read it, and %s as sqlglot does",
            shown_sql(sql), _words(ours), _words(tree),
        )  # fmt: skip
        return None
    return tuple(dict.fromkeys(ours))


def _words(tables: tuple[Table, ...] | frozenset[Table]) -> str:
    return ", ".join(sorted(f"{database}.{table}" for database, table in tables)) or "no table"
