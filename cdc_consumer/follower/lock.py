"""Takes the lock that keeps a second consumer of a topic away from the follower.

It ends with the session that took it. A session beside the first one has a lock of its own, by which the next consumer
finds it and ends it, should it outlive the first.
"""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Container

from cdc_consumer.sql import literals
from shared.errors import FollowerError, FollowerLinkError
from shared.mysql import ER, Connection, MySQLError, error_number, quote_name, rows

#: seconds to wait for it; a session that was closed an instant ago needs a moment to end
LOCK_WAIT = 5
#: sessions beside the first at most
MOST_WORKERS = 16
#: seconds between two looks at sessions that are to end
PAUSE = 0.02
#: errors of a server without the table, or of one that hides it, which is told when it is made
NOT_THERE = (ER.NO_SUCH_TABLE, ER.BAD_DB_ERROR, ER.TABLEACCESS_DENIED_ERROR, ER.DBACCESS_DENIED_ERROR)
#: characters of a lock's name at most
NAME_LENGTH = 64


def take_lock(connection: Connection, name: str, previous: Container[int | None]) -> None:
    """Take the lock. From then on no earlier session of the topic can commit: a position read now is final.

    `previous` has the connection ids of this process's earlier sessions. Raises FollowerError when somebody else holds
    the lock, FollowerLinkError when that is only the end of one of those.
    """
    lock = _lock(name)
    holder = _holder(connection, lock)
    if holder is not None and holder in previous:
        # the server does not know yet that the session is dead
        _kill(connection, holder)
    ((taken,),) = rows(connection, f"SELECT GET_LOCK({lock}, {LOCK_WAIT})")
    if taken == 1:
        _end_others(connection, name)
        return
    holder = _holder(connection, lock)
    if holder is not None and holder in previous:
        raise FollowerLinkError("the follower is still undoing what this consumer's last session began")
    raise FollowerError(
        "another consumer is replaying this topic into the follower, or a copy fills it"
        f" (connection {holder}); stop it first; or, if its machine is gone and the server does not know yet, run on"
        f" the follower: KILL {holder}"
    )


def take_lock_beside(connection: Connection, name: str, number: int) -> None:
    """Take the lock of the session of this number beside the one that holds the topic's. Raises FollowerLinkError."""
    ((taken,),) = rows(connection, f"SELECT GET_LOCK({_lock(name, number)}, {LOCK_WAIT})")
    if taken != 1:
        raise FollowerLinkError(f"the follower is still ending session {number} beside this consumer's last one")


def _end_others(connection: Connection, name: str) -> None:
    """End what a consumer has left beside its session, and wait until it cannot commit any more."""
    locks = [_lock(name, number) for number in range(1, MOST_WORKERS + 1)]
    deadline = time.monotonic() + LOCK_WAIT
    while True:
        (holders,) = rows(connection, f"SELECT {', '.join(f'IS_USED_LOCK({lock})' for lock in locks)}")
        left = [holder for holder in holders if holder is not None]
        if not left:
            return
        for holder in left:
            _kill(connection, holder)
        if time.monotonic() > deadline:
            raise FollowerLinkError(f"the follower is still undoing what session {left[0]} of a consumer began")
        time.sleep(PAUSE)


def _kill(connection: Connection, session: int) -> None:
    """End a session, which may have ended in between."""
    with contextlib.suppress(MySQLError):
        rows(connection, f"KILL {literals.integer(session)}")


def _lock(name: str, number: int = 0) -> str:
    """Return the name of a lock as SQL; 0 is the topic's own."""
    if number:
        # no topic has a space in its name
        name = f"{name} {number}"
    return literals.text(name if len(name) <= NAME_LENGTH else hashlib.sha256(name.encode()).hexdigest())


def refuse_shared_gtids(connection: Connection, database: str, topic: str) -> None:
    """Refuse a second consumer under the leader's GTIDs: a transaction in both topics is executed after its first part.

    `database` is the system's own, `topic` this consumer's. A consumer of some of a producer's topics, whose name has a
    slash, may stand behind a heartbeat that tells no GTID. Raises FollowerError.
    """
    position = f"{quote_name(database)}.`position`"
    other, whose = "another topic", "'...'"
    used = "gtid IS NOT NULL OR (sequence >= 0 AND LOCATE('/', topic))"
    try:
        found = rows(connection, f"SELECT topic FROM {position} WHERE topic <> %s AND ({used}) LIMIT 1", (topic,))
    except MySQLError as error:
        if error_number(error) not in NOT_THERE:
            raise
        found = []
    if found:
        other, whose = f"topic {found[0][0]}", literals.text(found[0][0])
    else:
        name = hashlib.sha256(f"{database} under the leader's GTIDs".encode()).hexdigest()
        ((taken,),) = rows(connection, f"SELECT GET_LOCK({literals.text(name)}, {LOCK_WAIT})")
        if taken == 1:
            return
    raise FollowerError(
        f"the follower takes {other} under the leader's GTIDs already, and of a transaction that is in both only the"
        " first part would be applied: look whether [topic] has the right name; for several topics set gtids = false"
        " under [apply] in the profiles of all its consumers; or, when"
        f" that topic is no longer applied there, run on the follower: DELETE FROM {position} WHERE topic = {whose}"
    )


def _holder(connection: Connection, lock: str) -> int | None:
    """Connection id of the session that holds it."""
    ((holder,),) = rows(connection, f"SELECT IS_USED_LOCK({lock})")
    return None if holder is None else int(holder)
