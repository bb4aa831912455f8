"""Tells what the filters name and the leader does not have."""

from __future__ import annotations

import logging

from cdc_consumer.parity.schema.records import Schema
from shared.filters import DatabaseFilter

logger = logging.getLogger(__name__)


def tell_unmet(databases: DatabaseFilter, schema: Schema) -> None:
    """Log it: it may still come. Where the leader has none of the databases, somebody has mistyped them: a warning."""
    level = logging.INFO if schema.databases else logging.WARNING
    tables = [*schema.tables, *(name for (kind, name) in schema.objects if kind == "VIEW")]
    for key, names in databases.unmet(schema.databases, tables).items():
        if key != "exclude_tables":  # what is left out was not read
            logger.log(level, "%s names %s: the leader does not have it now", key, names)
