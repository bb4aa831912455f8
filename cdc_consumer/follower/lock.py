"""Takes the lock that keeps a second consumer of a topic away from the follower.

It ends with the session that took it.
"""

from __future__ import annotations

import contextlib
import hashlib

from cdc_consumer.sql import literals
from shared.errors import FollowerError, FollowerLinkError
from shared.mysql import Connection, MySQLError, rows

#: seconds to wait for it; a session that was closed an instant ago needs a moment to end
LOCK_WAIT = 5
#: characters of a lock's name at most
NAME_LENGTH = 64


def take_lock(connection: Connection, name: str, previous: int | None) -> None:
    """Take the lock. From then on no earlier session of the topic can commit: a position read now is final.

    `previous` is the connection id of this process's last session, None for none. Raises FollowerError when somebody
    else holds the lock, FollowerLinkError when that is only the last session's end.
    """
    if len(name) > NAME_LENGTH:
        name = hashlib.sha256(name.encode()).hexdigest()
    lock = literals.text(name)
    holder = _holder(connection, lock)
    if holder is not None and holder == previous:
        # The server does not know yet that the session is dead. It may have ended in between.
        with contextlib.suppress(MySQLError):
            rows(connection, f"KILL {literals.integer(holder)}")
    ((taken,),) = rows(connection, f"SELECT GET_LOCK({lock}, {LOCK_WAIT})")
    if taken == 1:
        return
    holder = _holder(connection, lock)
    if holder is not None and holder == previous:
        raise FollowerLinkError("the follower is still undoing what this consumer's last session began")
    raise FollowerError(
        f"another consumer is replaying this topic into the follower (connection {holder}); stop it first"
    )


def _holder(connection: Connection, lock: str) -> int | None:
    """Connection id of the session that holds it."""
    ((holder,),) = rows(connection, f"SELECT IS_USED_LOCK({lock})")
    return None if holder is None else int(holder)
