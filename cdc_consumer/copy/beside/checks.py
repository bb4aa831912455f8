"""Names the checks of a table while it is made in another database than its own, where their names may be taken."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterator

from cdc_consumer.copy.rows.load import Writer
from cdc_consumer.parity.model import TableName
from cdc_consumer.parity.schema import alters
from cdc_consumer.parity.schema.records import TableRecord
from cdc_consumer.sql import literals
from shared.mysql import quote_name

#: what the server gives a check without a name: that of its table, and this; a RENAME of the table alters both
_NUMBERED = re.compile(r"_chk_[1-9]\d*")


def check_names(table: TableRecord, into: TableName, writer: Writer) -> dict[str, str]:
    """Return how the checks of a table are named while it is made as `into`: nothing else there has these names."""
    taken = {
        name.lower()
        for (name,) in writer.rows(
            "SELECT CONSTRAINT_NAME FROM information_schema.CHECK_CONSTRAINTS"
            f" WHERE CONSTRAINT_SCHEMA = {literals.text(into.database)}"
        )
    }
    return {each.name: _name(each.name, table.name, into, taken) for each in table.constraints if each.kind == "check"}


def _name(own: str, table: TableName, into: TableName, taken: Collection[str]) -> str:
    number = own.removeprefix(table.table)
    if number != own and _NUMBERED.fullmatch(number):
        return into.table + number
    return _while_made(own, into) if own.lower() in taken else own


def _while_made(own: str, into: TableName) -> str:
    """Return a name that no other check has."""
    return f"copy_{hashlib.sha256(chr(0).join((into.table, own)).encode()).hexdigest()[:32]}"


def naming(table: TableRecord, into: TableName, writer: Writer) -> Iterator[str]:
    """Yield the statement that gives the checks of a table, once it is in its place, the names they could not have."""
    where = f"TABLE_SCHEMA = {literals.text(into.database)} AND TABLE_NAME = {literals.text(into.table)}"
    there = {
        name
        for (name,) in writer.rows(f"SELECT CONSTRAINT_NAME FROM information_schema.TABLE_CONSTRAINTS WHERE {where}")
    }
    checks = [each for each in table.constraints if each.kind == "check" and _while_made(each.name, into) in there]
    if checks:
        gone = [f"DROP CHECK {quote_name(_while_made(each.name, into))}" for each in checks]
        yield alters.alter_table(table.name, [*gone, *(f"ADD {each.definition}" for each in checks)])
