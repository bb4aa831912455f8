"""Sets the variables of one session: as row changes need them, or as a statement's session on the leader had them."""

from __future__ import annotations

from collections.abc import Mapping

from cdc_consumer.follower.gtids import Gtids
from cdc_consumer.follower.pipe import Pipe, ResultCheck
from cdc_consumer.sql.session import ROWS, RowMode, Session, row_settings
from shared.errors import FollowerError
from shared.mysql import quote_name

#: what most rows need
USUAL = RowMode()


class SessionVariables:
    """Is the only one to change the variables of a session, and runs the statements that need others."""

    def __init__(self, pipe: Pipe, gtids: Gtids, session: Session) -> None:
        self._pipe = pipe
        self._gtids = gtids
        self._session = session
        #: what they are set to
        self._mode = USUAL

    def use_mode(self, mode: RowMode) -> None:
        """Let the session be as these rows need it."""
        # comparing two modes costs a statement less than comparing what they stand for
        if mode != self._mode:
            self._mode = mode
            self._set(row_settings(mode))

    def run(
        self, sql: bytes, database: str, settings: Mapping[str, str], gtid: str | None, about: str, *, hidden: bool
    ) -> None:
        """Run a statement that commits by itself, as `Worker.run` says; after it the session is as before."""
        self._use(database, about)
        if hidden:
            with self._gtids.hidden():
                self._run(sql, settings, about)
            return
        self._gtids.take(gtid)
        self._run(sql, settings, about)
        if gtid is not None:
            # the server may find that there is nothing to log; the GTID is then still ours to commit
            self._pipe.put("COMMIT", ResultCheck(about="COMMIT"))
        self._pipe.settle()

    def open(self, sql: bytes, database: str, settings: Mapping[str, str], gtid: str | None, about: str) -> None:
        """Run a statement that begins a transaction in which no variable can be set; `close` follows its end."""
        self._use(database, about)
        self._gtids.take(gtid)
        self._run(sql, settings, about, closes=False)

    def close(self) -> None:
        """Let the session be as row changes need it."""
        self._set(ROWS)

    def _use(self, database: str, about: str) -> None:
        if database:
            self._pipe.put(f"USE {quote_name(database)}", ResultCheck(about=f"{about}, USE {database}"))
            self._session.used_database()

    def _run(self, sql: bytes, settings: Mapping[str, str], about: str, *, closes: bool = True) -> None:
        self._set(settings)
        try:
            self._pipe.run(sql, about)
        except FollowerError:
            if not self._pipe.broken:
                self._set(ROWS)
            raise
        if closes:
            self._set(ROWS)

    def _set(self, settings: Mapping[str, str]) -> None:
        for change in self._session.change(settings):
            self._pipe.put(change, ResultCheck(about=change))
