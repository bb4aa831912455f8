"""Says of a transaction why it cannot be captured: because it is not whole, or of a kind that cannot be carried."""

from __future__ import annotations

from cdc_producer.decode.binlog_event import EXAMINE, BinlogEvent, way_past
from cdc_producer.resume import START_ANEW
from shared.errors import LeaderError, UnsupportedError
from shared.events import Position


def without_end(event: BinlogEvent) -> LeaderError:
    """Return the error for an event that begins a transaction inside of another."""
    return LeaderError(
        f"the transaction before {event.where()} has no end in the binlog: the leader lost part of it; {EXAMINE}"
    )


def outside_transaction(event: BinlogEvent) -> LeaderError:
    """Return the error for an event that only a transaction has."""
    return LeaderError(
        f"binlog event of type {event.type} at {event.where()} stands outside any transaction: the leader lost part of"
        f" its binlog, or it is damaged; {EXAMINE}"
    )


def without_table_map(event: BinlogEvent) -> LeaderError:
    """Return the error for rows of which nothing says what they look like."""
    return LeaderError(f"rows at {event.where()} have no table map: the leader's binlog is damaged; {EXAMINE}")


def half_published(event: BinlogEvent) -> LeaderError:
    """Return the error for a transaction of which an earlier start published a part, and now nothing is left."""
    return LeaderError(
        f"the filters changed while the transaction that ends at {event.file}:{event.end} was half published; start"
        " once with the former filters"
    )


def not_there(edge: Position) -> LeaderError:
    """Return the error for a place in the binlog that holds no transaction at all, where the topic ends with one."""
    return LeaderError(
        f"the leader does not have the transaction at {edge} that the topic ends with: it is not the leader this topic"
        f" was written from, or its binlog was reset; {START_ANEW}"
    )


def rolled_back_in_part(event: BinlogEvent) -> UnsupportedError:
    """Return the error for a ROLLBACK in the binlog, behind rows."""
    return UnsupportedError(
        f"the transaction that holds {event.where()} was rolled back in part: it changed tables with and without"
        " transactions (MyISAM), and which of its rows stayed cannot be told; convert those tables to InnoDB;"
        f" {way_past(event.where())}"
    )


def rows_of_xa(event: BinlogEvent) -> UnsupportedError:
    """Return the error for rows between XA START and XA END."""
    return UnsupportedError(
        f"rows at {event.where()} belong to an XA transaction, which may still be rolled back after it is in the"
        " binlog; XA transactions on replicated databases are not supported;"
        f" {way_past(event.where())}"
    )


def partial_update(event: BinlogEvent, uri: str) -> UnsupportedError:
    """Return the error for rows that hold a part of a JSON value; `uri` names their table."""
    return UnsupportedError(
        f"rows of {uri} at {event.where()} are a partial JSON update (binlog_row_value_options=PARTIAL_JSON) and cannot"
        f" be replicated; no session of the leader may set that; {way_past(event.where())}"
    )
