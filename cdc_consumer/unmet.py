"""Says what the filter names and the topic has not brought: a configuration that replicates nothing says so."""

from __future__ import annotations

import logging

from cdc_consumer.follower.worker import Worker
from shared.filters import DatabaseFilter

logger = logging.getLogger(__name__)


class Unmet:
    """Looks once at what there is on the follower, when all that the topic holds is applied."""

    def __init__(self, worker: Worker, databases: DatabaseFilter) -> None:
        self._worker = worker
        self._databases = databases
        self.told = False

    def tell(self) -> None:
        """Warn of each key of the profile that names what is not there."""
        self.told = True
        ask, tables = self._worker.ask, []
        if not self._databases.whole_databases:
            tables = ask("SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES")
        databases = ask("SELECT SCHEMA_NAME FROM information_schema.SCHEMATA")
        unmet = self._databases.unmet(
            [str(name) for (name,) in databases], [(str(database), str(table)) for database, table in tables]
        )
        for key, names in unmet.items():
            logger.warning("%s names %s: nothing of it is in the topic so far", key, names)
