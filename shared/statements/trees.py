"""Asks sqlglot which tables a statement writes: a second reading beside our own, and never more than that."""

from __future__ import annotations

import logging

import sqlglot
from sqlglot import exp

#: sql_mode ANSI_QUOTES: what stands in double quotes is a name
ANSI_QUOTES = 4
#: a tree takes two hundred times the memory of its statement, and a second for these characters
LONGEST = 1 << 17
#: it tells of a statement that it has no tree for
logging.getLogger("sqlglot").setLevel(logging.CRITICAL)

Table = tuple[str, str]


def tables_in_tree(sql: str, sql_mode: int, database: str) -> frozenset[Table] | None:
    """Return database and name of each table or view that a statement creates, alters, drops or empties.

    `database` is the session's. None where sqlglot has no tree or one that does not tell, and of a very long statement.
    """
    # its MySQL dialect takes names in double quotes for strings
    if sql_mode & ANSI_QUOTES or len(sql) > LONGEST:
        return None
    try:
        trees = sqlglot.parse(sql, dialect="mysql")
    except (sqlglot.errors.SqlglotError, RecursionError):
        return None
    if len(trees) != 1 or trees[0] is None:
        return None
    found = _written(trees[0])
    return None if found is None else frozenset((table.db or database, table.name) for table in found)


def _written(tree: exp.Expr) -> list[exp.Table] | None:
    if isinstance(tree, exp.TruncateTable):
        return [each for each in tree.expressions if isinstance(each, exp.Table)] or None
    if not isinstance(tree, (exp.Create, exp.Drop, exp.Alter)):
        return None
    if tree.args.get("kind") == "INDEX":
        index = tree.this if isinstance(tree.this, exp.Index) else None
        table = index.args.get("table") if index is not None else tree.args.get("cluster")
        return [table] if isinstance(table, exp.Table) else None
    if tree.args.get("kind") not in ("TABLE", "VIEW"):
        return None
    heads = [part for part in (tree.this, *tree.expressions) if part is not None]
    if isinstance(tree, exp.Create):
        heads = heads[:1]
    tables = [part if isinstance(part, exp.Table) else part.find(exp.Table) for part in heads]
    renamed = [action.this for action in tree.args.get("actions") or () if isinstance(action, exp.AlterRename)]
    found = [table for table in (*tables, *renamed) if table is not None]
    return found if all(isinstance(table, exp.Table) for table in found) and found else None
