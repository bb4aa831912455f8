"""Counts the rows that were copied: somebody else may have written to the follower meanwhile."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from cdc_consumer.copy.rows.load import Writer
from cdc_consumer.copy.state import CopiedRows
from cdc_consumer.parity.model import TableName
from cdc_consumer.parity.servers.connection import MOVED
from shared.mysql import MySQLError, error_number

logger = logging.getLogger(__name__)


def other_counts(
    writer: Writer, tables: Iterable[CopiedRows], into: Callable[[TableName], TableName]
) -> set[TableName]:
    """Return the tables, and warn of them, that have another number of rows than were copied `into` their place."""
    found = set()
    for name, copied, _ in tables:
        there = _count(writer, into(name))
        if there != copied:
            found.add(name)
            logger.warning(
                "%s has %d rows on the follower, and %d were copied: somebody else writes there, and must not",
                name, there, copied,
            )  # fmt: skip
    return found


def _count(writer: Writer, name: TableName) -> int:
    try:
        ((count,),) = writer.rows(f"SELECT COUNT(*) FROM {name.sql}")
    except MySQLError as error:
        if error_number(error) not in MOVED:
            raise
        return 0  # somebody has dropped it
    return int(count)
