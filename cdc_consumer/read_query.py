"""What a Query is, read again from its text: whoever can write to the topic may say anything about it.

Only a statement that creates, alters or drops objects of databases in the filter is run; that it is one is decided
here, and by nothing that the event says beside the text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from cdc_consumer.follower.preflight import Facts
from cdc_consumer.sql.session import UTF8MB4, of_query
from shared.errors import EventError, FollowerError, UnsupportedError
from shared.events import Query
from shared.mysql import quote_account
from shared.statements.create_table import reaching_words, referenced_tables
from shared.statements.heads import Statement, read_statement, shown_sql
from shared.statements.tokens import Tokens, Unreadable

#: kinds of statement that no producer publishes, and what they are
REFUSED = {
    "ACCOUNT": "changes accounts, which are the follower's own",
    "MAINTENANCE": "acts on the server and not on a database",
    "TRANSACTION": "is a part of a transaction, which the event's own keys tell",
    "TEMPORARY": "acts on temporary tables, which end with their session",
    "DML": "may change rows or the server, and rows travel as rows",
}


class QueryReading(NamedTuple):
    """Holds a Query that may run, as far as its text tells."""

    query: Query
    #: its bytes as they run here
    sql: bytes
    statement: Statement
    #: the session's variables as SQL
    settings: dict[str, str]
    #: database and name of other tables that it names: those of its foreign keys, where "" is the database of its own
    #: table, or those that a MERGE table unites
    references: tuple[tuple[str, str], ...]
    #: it, in words for errors
    about: str


def read_query(query: Query, sequence: int, facts: Facts) -> QueryReading:
    """Read a Query for the follower of these facts. Raises EventError, FollowerError."""
    about = f"{shown_sql(query.sql)} in database {query.database or '(none)'}, sequence {sequence}"
    try:
        settings = of_query(query.session)
        sql_mode = query.session.get("sql_mode", 0)
        charset = facts.charsets[query.session.get("character_set_client", int(UTF8MB4))]
        statement = read_statement(query.sql, sql_mode, query.database, charset, facts.number).folded(facts.folds)
        rewrite = ADDITIONS.get((statement.verb, statement.kind))
        sql = query.sql if rewrite is None else rewrite(query, Tokens(query.sql, sql_mode, charset))
        reaching = ""
        references: tuple[tuple[str, str], ...] = ()
        if statement.kind == "TABLE":
            # a table with rows behind it is created in utf8mb4, whatever the client is said to speak
            spoken = charset if statement.empty is None else "utf8mb4"
            reaching = reaching_words(query.sql, sql_mode, spoken, facts.number)
            if not reaching:
                references = referenced_tables(query.sql, sql_mode, query.database, spoken, facts.number)
    except KeyError as error:
        raise FollowerError(
            f"{about} cannot be replayed: the follower, MySQL {facts.version}, does not know the collation {error} of"
            " its client"
        ) from error
    except (ValueError, TypeError, AttributeError) as error:
        raise EventError(f"{about} cannot be replayed: {error}") from error
    except (UnsupportedError, Unreadable) as error:
        raise FollowerError(f"{about} cannot be replayed") from error
    if statement.kind in REFUSED:
        raise EventError(
            f"{about} is not run: it {REFUSED[statement.kind]}, and no producer publishes such a statement"
        )
    if reaching:
        raise EventError(
            f"{about} is not run: with {reaching} it reaches beyond the table it names, and no producer publishes such"
            " a statement"
        )
    _require_agreement(query, statement, about, facts.folds)
    return QueryReading(query, sql, statement, settings, references, about)


def _require_agreement(query: Query, statement: Statement, about: str, folds: bool) -> None:
    """Refuse a Query whose event and whose text write other databases."""
    told, read = {name.lower() if folds else name for name in query.writes}, set(statement.databases)
    if not read:
        raise FollowerError(f"{about} cannot be replayed: it names no database that it writes")
    if told and told != read:
        raise EventError(
            f"{about} is not run: its event says that it writes {', '.join(sorted(told))}, and its text writes"
            f" {', '.join(sorted(read))}"
        )


def _owned(query: Query, tokens: Tokens) -> bytes:
    """An ALTER EVENT with who ran it on the leader as its definer, which is what it means without that clause."""
    tokens.expect("ALTER")
    account = query.session.get("invoker")
    if account is None or tokens.word != "EVENT":
        return query.sql
    clause = f"DEFINER={quote_account(*account)} "
    return query.sql[: tokens.start] + clause.encode() + query.sql[tokens.start :]


def _encrypted(query: Query, tokens: Tokens) -> bytes:
    """A CREATE DATABASE with the encryption that its session had as its default, which only an administrator may set.

    The leader tells it where the statement has no such clause.
    """
    default = query.session.get("default_table_encryption")
    if default is None:
        return query.sql
    tokens.expect("CREATE")
    tokens.advance()
    if tokens.take("IF"):
        tokens.take("NOT")
        tokens.take("EXISTS")
    clause = b" ENCRYPTION 'Y' " if default else b" ENCRYPTION 'N' "
    return query.sql[: tokens.end] + clause + query.sql[tokens.end :]


#: statements to whose text is added what the leader knew beside it
ADDITIONS: Mapping[tuple[str, str], Callable[[Query, Tokens], bytes]] = {
    ("ALTER", "EVENT"): _owned,
    ("CREATE", "DATABASE"): _encrypted,
}
