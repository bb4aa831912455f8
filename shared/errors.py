"""Every error a user can meet, as one tree.

CdcError                     one sentence naming what, where and what to do
├── ProfileError             the profile is not usable (exit status 2)
├── LeaderError              the leader, its settings or its binlog
│   ├── BinlogPurgedError    the leader no longer has the binlog the topic continues from
│   ├── UnsupportedError     a binlog event, column type or statement that cannot be carried exactly
│   └── LeaderLinkError      the connection is down; trying again may help
├── TopicError               the topic cannot be read or written
│   ├── TopicMissingError    nobody has written to it yet
│   ├── TopicLockedError     another producer writes to it
│   ├── RecordTooLargeError  one event exceeds what the topic stores
│   ├── RecordDamagedError   a record is not what was appended
│   ├── OffsetGoneError      retention or re-creation removed records still needed
│   ├── HistoryError         the topic cannot tell what happened between two positions
│   └── TopicLinkError       the cluster is not reachable; trying again may help
├── EventError               a topic record is not an event
├── SequenceError            the topic reorders or lost an event
├── FollowerError            the follower, its settings or a statement on it
│   ├── DivergedError        the follower's rows are not what the leader's were
│   │   └── RowsMissedError  a statement matched or inserted another number of rows than it must
│   ├── RowUnnamedError      transactions were refused, and the follower does not say for which row
│   ├── FollowerBusyError    a lock was not to be had; the transaction may be tried again
│   └── FollowerLinkError    the connection is down; trying again may help
└── AuditError               the audit cannot go on
    ├── ServerGoneError      a server does not answer
    └── TableMovedError      a table is no longer what it was when the audit began
"""

from __future__ import annotations


class CdcError(Exception):
    """Something a user can act on; its text is the whole message."""

    #: exit status of the program that stops with it
    exit_status = 1


class ProfileError(CdcError):
    exit_status = 2


class LeaderError(CdcError):
    pass


class BinlogPurgedError(LeaderError):
    pass


class UnsupportedError(LeaderError):
    pass


class LeaderLinkError(LeaderError):
    pass


class TopicError(CdcError):
    pass


class TopicMissingError(TopicError):
    pass


class TopicLockedError(TopicError):
    pass


class RecordTooLargeError(TopicError):
    pass


class RecordDamagedError(TopicError):
    pass


class OffsetGoneError(TopicError):
    pass


class HistoryError(TopicError):
    pass


class TopicLinkError(TopicError):
    pass


class EventError(CdcError):
    pass


class SequenceError(CdcError):
    pass


class FollowerError(CdcError):
    pass


class DivergedError(FollowerError):
    pass


class RowsMissedError(DivergedError):
    """Holds the table (database, table) of the rows, None where the follower does not tell it."""

    def __init__(self, words: str, table: tuple[str, str] | None = None) -> None:
        super().__init__(words)
        self.table = table


class RowUnnamedError(FollowerError):
    """Holds which transactions: those up to `sequence`, which change these `tables` (database, table)."""

    def __init__(self, words: str, sequence: int, tables: frozenset[tuple[str, str]]) -> None:
        super().__init__(words)
        self.sequence = sequence
        self.tables = tables


class FollowerBusyError(FollowerError):
    pass


class FollowerLinkError(FollowerError):
    pass


class AuditError(CdcError):
    pass


class ServerGoneError(AuditError):
    pass


class TableMovedError(AuditError):
    pass


#: those after which the same may succeed: a server, or a cluster, does not answer
TRYING_HELPS = (FollowerLinkError, LeaderLinkError, ServerGoneError, TopicLinkError)


def printable(text: str) -> str:
    """Return the text with what would steer a terminal, or begin another line, as an escape."""
    return "".join([letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text])


def causes(error: BaseException) -> str:
    """Say in one line the error and what caused it, outermost first, without repeating a text already said."""
    parts: list[str] = []
    seen: BaseException | None = error
    while seen is not None:
        text = " ".join(str(seen).split()) or type(seen).__name__
        # a driver's error is a number and its words
        words = " ".join(seen.args[-1].split()) if seen.args and isinstance(seen.args[-1], str) else ""
        if not any((words or text) in part for part in parts):
            parts.append(text)
        seen = seen.__cause__
    return printable(": ".join(parts))
