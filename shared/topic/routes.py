"""Names the topic that each table's events go to, as [topic.routes] of the producer's profile says; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from shared.filters import TablePatterns
from shared.profile_table import topic_name


class Routes:
    """Finds the topic of a table: that of the first pattern which is the table's, else the default one."""

    def __init__(self, default: str, routes: Mapping[str, str]) -> None:
        """`routes` maps patterns of `database.table` to templates."""
        self.default = default
        self._routes = [(TablePatterns([pattern]), template) for pattern, template in routes.items()]

    def topic(self, database: str, table: str) -> str:
        """Return the name of the table's topic."""
        for pattern, template in self._routes:
            if pattern.match(database, table):
                return topic_name(template, database, table)
        return self.default

    def topics(self, tables: Iterable[tuple[str, str]]) -> list[str]:
        """Return the topics of some tables, each once; the default one for no table."""
        return list(dict.fromkeys(self.topic(*table) for table in tables)) or [self.default]
