"""Reads the statements that a binlog holds as text, and decides which of them are replicated."""

from __future__ import annotations

from itertools import product
from json.encoder import encode_basestring as json_string

from cdc_producer.decode.binlog_event import BinlogEvent, way_past
from cdc_producer.decode.query_event import QueryEvent, read_query, require_understood
from cdc_producer.decode.rows_event import Operation
from cdc_producer.leader import LeaderFacts
from shared.errors import UnsupportedError
from shared.events import Query, query_json, resource_uri
from shared.filters import DatabaseFilter
from shared.statements.create_table import empty_table, reaching_words
from shared.statements.heads import Statement, read_statement, shown_sql
from shared.statements.stored_text import in_one_charset
from shared.statements.tokens import Unreadable
from shared.values import UTF8_CHARSETS

#: classes of statement that are not replicated: accounts are the follower's own, the others change no data
NOT_REPLICATED = frozenset({"ACCOUNT", "MAINTENANCE", "TEMPORARY", "TRANSACTION"})
#: what to do about a statement that was logged as text
_AS_ROWS = "its session, or the leader, has binlog_format other than ROW: set it to ROW in both"
#: statements whose head the leader writes anew, in utf8mb4, whatever the client's character set
REWRITTEN = frozenset({("CREATE", "EVENT")}).union(
    product(("CREATE", "ALTER"), ("VIEW", "PROCEDURE", "FUNCTION", "LIBRARY"))
)


class Statements:
    """Makes operations of the statements that write included databases."""

    def __init__(self, resource: str, databases: DatabaseFilter, facts: LeaderFacts, routed: bool = False) -> None:
        """`resource` is the profile's mysql_resource_name; `routed` asks which tables each statement writes."""
        self._routed = routed
        self._resource = resource
        self._databases = databases
        self._facts = facts
        #: whether the leader stores names in lower case, and takes them in any
        self._folds = facts.lower_case_table_names != 0

    def read(self, event: BinlogEvent, *, in_block: bool) -> tuple[str, Operation] | None:
        """Return the key `uri` as JSON and the operation; None for a statement that is not replicated.

        `in_block` says that it stands between BEGIN and COMMIT. Raises UnsupportedError.
        """
        query = read_query(event)
        writes = self._writes(query, event.where())
        inside, outside = self._databases.split(writes)
        if inside and outside:
            raise UnsupportedError(
                f"statement at {event.where()} ({shown_sql(query.sql)}) writes {', '.join(inside)}, which the filter"
                f" includes, and {', '.join(outside)}, which it does not; include all of them or none;"
                f" {way_past(event.where())}"
            )
        if inside and not self._takes_tables(query, event.where()):
            return None
        if inside:
            require_understood(query, event.where())
            if self._writes_rows(query, in_block):
                raise UnsupportedError(
                    f"statement at {event.where()} ({shown_sql(query.sql)}) changes rows as text and cannot be"
                    f" replicated; {_AS_ROWS}; {way_past(event.where())}"
                )
            return self._operation(query, tuple(inside))
        return None

    def _writes_rows(self, query: QueryEvent, in_block: bool) -> bool:
        """Tell whether the text alone says which rows it writes; a table's rows may follow it instead."""
        sql_mode = query.session.get("sql_mode", 0)
        if in_block:
            return empty_table(query.sql, sql_mode) is None
        try:
            return bool(reaching_words(query.sql, sql_mode, self._charset(query)))
        except Unreadable:
            return False  # what the leader says that it writes is known, and the consumer reads it again

    def _charset(self, query: QueryEvent) -> str:
        return self._facts.charsets[query.session.get("character_set_client", 255)].name

    def _statement(self, query: QueryEvent) -> Statement:
        """Read the text of a query, with names as the leader stores them. Raises UnsupportedError."""
        sql_mode = query.session.get("sql_mode", 0)
        return read_statement(query.sql, sql_mode, query.database, self._charset(query)).folded(self._folds)

    def _takes_tables(self, query: QueryEvent, where: str) -> bool:
        """Tell whether the tables that a statement writes take part; true of one that writes none."""
        if self._databases.whole_databases:
            return True
        try:
            statement = self._statement(query)
        except UnsupportedError as error:
            raise UnsupportedError(f"statement at {where}: {error}; {way_past(where)}") from None
        takes, refusal = self._databases.takes_statement(statement)
        if refusal:
            raise UnsupportedError(f"statement at {where} ({shown_sql(query.sql)}) {refusal}; {way_past(where)}")
        return takes

    def _writes(self, query: QueryEvent, where: str) -> tuple[str, ...]:
        """Databases the statement writes: as the leader recorded them, else as its text says."""
        if query.updated is not None and not any(name in self._databases for name in query.updated):
            return query.updated
        charset = self._charset(query)
        try:
            statement = self._statement(query)
        except UnsupportedError as error:
            if query.updated is None:
                raise UnsupportedError(f"statement at {where}: {error}; {way_past(where)}") from None
            return query.updated
        if statement.kind == "DML" and query.updated is None:
            raise UnsupportedError(
                f"statement at {where} ({shown_sql(query.sql)}) may change rows of any database, as text, and cannot be"
                f" replicated; {_AS_ROWS}; {way_past(where)}"
            )
        if statement.kind in NOT_REPLICATED:
            return ()
        rewritten = (statement.verb, statement.kind) in REWRITTEN
        plain = charset in UTF8_CHARSETS or query.sql.isascii()
        if rewritten and not plain and not in_one_charset(query.sql, query.session.get("sql_mode", 0), charset):
            raise UnsupportedError(
                f"statement at {where} ({shown_sql(query.sql)}) is a {statement.verb} {statement.kind} from a client"
                f" of character set {charset}, and the leader logged names in utf8mb4 and the rest in that character"
                f" set, so it cannot be read for certain; run it again from a utf8mb4 client; {way_past(where)}"
            )
        return statement.databases if query.updated is None else query.updated

    def _operation(self, query: QueryEvent, writes: tuple[str, ...]) -> tuple[str, Operation]:
        if self._facts.lower_case_table_names:
            query.session["lower_case_table_names"] = self._facts.lower_case_table_names
        uri = json_string(resource_uri(self._resource, writes[0]))
        tables = self._tables(query) if self._routed else None
        return uri, Operation(query_json(Query(query.sql, query.database, writes, query.session, tables=tables)))

    def _tables(self, query: QueryEvent) -> tuple[tuple[str, str], ...] | None:
        # sqlglot is slow to load, and only those who route need it
        from shared.statements.touched import touched_tables

        sql_mode = query.session.get("sql_mode", 0)
        return touched_tables(query.sql, sql_mode, query.database, self._charset(query), self._folds)
