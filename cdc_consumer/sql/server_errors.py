"""Translates the follower's errors into ours: what happened, to what, and what to do."""

from __future__ import annotations

from typing import Any

from shared.errors import DivergedError, FollowerBusyError, FollowerError, FollowerLinkError
from shared.mysql import MySQLError, error_number, error_text, is_link_error

#: a lock that was not to be had: lock wait timeout, deadlock
LOCKED = frozenset({1205, 1213})
#: also KILL QUERY, GTIDs that were switched off meanwhile, a conflict in Group Replication
BUSY = LOCKED | {1317, 1781, 3101}
#: the rows in the table contradict the rows in the topic: duplicate keys, foreign keys, missing tables and columns,
#: CHECK constraints
CONTRADICTED = frozenset({1054, 1062, 1146, 1216, 1217, 1451, 1452, 1586, 3819})
#: these, and values that do not fit
DIVERGED = CONTRADICTED | {1048, 1264, 1265, 1292, 1364, 1366, 1406}
#: a disk, a tablespace or a file that cannot grow
FULL = frozenset({3, 20, 1021, 1026, 1114})
READ_ONLY = frozenset({1290, 1836})
#: limits of the server or the account: of a transaction's size in the binlog, of connections, of what is asked an hour
LIMITED = frozenset({1197, 1203, 1226})
#: the account may not: a database, a table, a column, a routine, or what needs a privilege of the whole server
DENIED = frozenset({1044, 1142, 1143, 1227, 1370})


def translate(error: Exception, about: Any, remedy: str = "") -> FollowerError:
    """Return the named error for a driver's error while executing `about`, words that may be empty.

    `remedy` ends the sentence where the server's own words do not tell what to do.
    """
    words = error_text(error)
    doing = f"{about}: " if str(about) else ""
    number = error_number(error)
    if is_link_error(error):
        return FollowerLinkError(f"the connection to the follower is lost ({words})")
    if not isinstance(error, MySQLError):
        raise error
    if number in BUSY:
        return FollowerBusyError(f"{doing}{words}")
    if number in READ_ONLY and "read" in words:
        return FollowerError(
            f"the follower is read-only ({words}); run on it: SET GLOBAL super_read_only = OFF, and either"
            " SET GLOBAL read_only = OFF or GRANT CONNECTION_ADMIN to the consumer's user"
        )
    if number == 1153:
        return FollowerError(f"{doing}{words}; raise max_allowed_packet on the follower and start again")
    if number in DENIED:
        return FollowerError(
            f"{doing}the consumer's user of the follower lacks a privilege: {words}; grant it there (README lists"
            " them all) and start again"
        )
    if number in LIMITED:
        return FollowerError(f"{doing}the follower has a limit: {words}; raise it there and start again")
    if number in FULL:
        return FollowerError(f"{doing}the follower has no room: {words}; free space on its disk and start again")
    kind = DivergedError if number in DIVERGED else FollowerError
    return kind(f"{doing}the follower refuses it: {words}{remedy}")


def too_large(size: int, limit: int, about: Any) -> FollowerError:
    """Explain a packet that the server would answer by closing the connection."""
    needed = min(1 << 30, 1 << size.bit_length())
    return FollowerError(
        f"{about} needs a packet of {size} bytes and the follower takes {limit};"
        f" run on it: SET PERSIST max_allowed_packet = {needed}; and start again"
    )
