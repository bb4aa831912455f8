"""Reads what a server tells of the clone that it was made by, which outlives its restarts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from shared.errors import FollowerError
from shared.events import Position
from shared.mysql import ER, MySQLError, error_number

#: runs a query on the server
AskServer: TypeAlias = Callable[[str], list[tuple[Any, ...]]]

#: the tables are there while the plugin is, and may be read by whoever may read everything
_HIDDEN = (ER.NO_SUCH_TABLE, ER.TABLEACCESS_DENIED_ERROR, ER.DBACCESS_DENIED_ERROR)
#: the stage in which a server removes what it had
_DROPPING = "DROP DATA"
_MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True)
class CloneStatus:
    """Tells of the last clone that a server was to become."""

    #: "Not Started", "In Progress", "Completed", "Failed"; a server that was killed meanwhile stays "In Progress"
    state: str
    #: when it began, by the server's clock: no two have the same
    began: str
    #: host:port of the server it was made from
    source: str
    #: the session that makes it, None once nobody does
    session: int | None
    #: whether what the server had before was removed, or partly so
    dropped: bool
    #: MySQL's words, "" when nothing failed
    error: str
    #: what is in the files: all that ends up to here in the binlog of the source, and its GTIDs; None before the end
    position: Position | None
    gtids: str

    @property
    def whole(self) -> bool:
        """Tell whether the server is a clone."""
        return self.state == "Completed" and self.position is not None


def read_status(ask: AskServer) -> CloneStatus | None:
    """Ask for the server's last clone; None when there was none, or it cannot tell. Raises MySQLError."""
    try:
        found = ask(
            "SELECT STATE, CAST(BEGIN_TIME AS CHAR), SOURCE, PID, ERROR_MESSAGE, BINLOG_FILE, BINLOG_POSITION,"
            " GTID_EXECUTED FROM performance_schema.clone_status WHERE DESTINATION = 'LOCAL INSTANCE'"
        )
        stages: dict[str, str] = dict(ask("SELECT STAGE, STATE FROM performance_schema.clone_progress"))
    except MySQLError as failure:
        if error_number(failure) not in _HIDDEN:
            raise
        return None
    if not found:
        return None
    ((state, began, source, session, error, file, offset, gtids),) = found
    alive = session and ask(f"SELECT 1 FROM information_schema.PROCESSLIST WHERE ID = {int(session):d}")
    position = Position(file, int(offset)) if file else None
    dropping = stages.get(_DROPPING)
    # MySQL that refuses to begin says "Failed" too
    killed = dropping == "Failed" and (state == "In Progress" or "interrupted" in error)
    dropped = dropping in ("In Progress", "Completed") or killed
    gtids = "".join(gtids.split())
    return CloneStatus(state, began, source, session if alive else None, dropped, error, position, gtids)


def progress(ask: AskServer) -> str:
    """Say how far a clone is that is being made; "" when nothing is under way."""
    found = ask(
        "SELECT STAGE, CAST(DATA AS SIGNED), CAST(ESTIMATE AS SIGNED) FROM performance_schema.clone_progress"
        " WHERE STATE = 'In Progress'"
    )
    for stage, done, expected in found:
        size = f": {done / _MEGABYTE:.0f} of about {expected / _MEGABYTE:.0f} MB" if expected else ""
        return f"{stage.lower()}{size}"
    return ""


def refuse_half_cloned(ask: AskServer, position: str) -> None:
    """Raise FollowerError when the follower is part of a clone, or one of which nothing says where in the topic it is.

    `position` is a query for the topic's position, whose first column is an offset. Where the leader's GTIDs came
    along, MySQL itself passes over what a clone has.
    """
    status = read_status(ask)
    if status is None or not (status.whole or status.dropped):
        return
    try:
        if any(offset >= 0 for offset, *_ in ask(position)):
            return
    except MySQLError as error:
        if error_number(error) not in (ER.NO_SUCH_TABLE, ER.BAD_DB_ERROR):
            raise
    if not status.whole:
        raise FollowerError(
            "what the follower had was removed for a clone of the leader, which was not finished; run cdc-copy again;"
            " or, where it was loaded otherwise since, run on it: UNINSTALL PLUGIN clone"
        )
    if not status.gtids:
        raise FollowerError(
            f"the follower is a clone of {status.source} at {status.position}, and has no position in this topic, so"
            ' what it has would be applied once more; run cdc-copy with method = "clone", which writes the position;'
            " or, where it was loaded otherwise since, run on it: UNINSTALL PLUGIN clone"
        )
