"""Lists what both programs know of MySQL's binlog format: events, headers, flags, and the numbers of column types."""

from __future__ import annotations

from struct import Struct

#: timestamp, type, server id, size, end offset (low 32 bits), flags
HEADER = Struct("<IBIIIH")
HEADER_SIZE = HEADER.size
#: where in a header the type and the size are
TYPE_AT, SIZE_AT = 4, 9
#: bytes of the checksum behind an event
CHECKSUM_SIZE = 4
#: header flag of an event the leader makes up for one connection; it is in no file
ARTIFICIAL = 0x20


class EventType:
    """Lists the binlog event types that the producer reads. Source: MySQL's binlog_event.h, Log_event_type.

    Plain numbers, because comparing members of an Enum took a tenth of the time of a short transaction.
    """

    QUERY = 2
    STOP = 3
    ROTATE = 4
    INTVAR = 5
    RAND = 13
    USER_VAR = 14
    FORMAT_DESCRIPTION = 15
    XID = 16
    TABLE_MAP = 19
    HEARTBEAT = 27
    IGNORABLE = 28
    ROWS_QUERY = 29
    WRITE_ROWS = 30
    UPDATE_ROWS = 31
    DELETE_ROWS = 32
    GTID = 33
    ANONYMOUS_GTID = 34
    PREVIOUS_GTIDS = 35
    TRANSACTION_CONTEXT = 36
    VIEW_CHANGE = 37
    XA_PREPARE = 38
    PARTIAL_UPDATE_ROWS = 39
    TRANSACTION_PAYLOAD = 40
    HEARTBEAT_V2 = 41
    GTID_TAGGED = 42


#: bytes of the table's id, which table map and rows event begin with, and of the flags behind it
ID_SIZE, FLAGS_SIZE = 6, 2
#: flags of a rows event: the last one of its statement; foreign keys were not checked; every column is in the images
STATEMENT_END, NO_FOREIGN_KEY_CHECKS, COMPLETE_ROWS = 0x01, 0x02, 0x08
#: what a cascade did stands in the binlog too, so that a follower must not cascade again
CASCADES_LOGGED = 0x10

#: column types as the binlog numbers them. Source: MySQL's field_types.h
(TINY, SHORT, LONG, FLOAT, DOUBLE, TIMESTAMP, LONGLONG, INT24, DATE) = (1, 2, 3, 4, 5, 7, 8, 9, 10)
(YEAR, VARCHAR, BIT, TIMESTAMP2, DATETIME2, TIME2, VECTOR, JSON) = (13, 15, 16, 17, 18, 19, 242, 245)
(NEWDECIMAL, ENUM, SET, BLOB, VAR_STRING, STRING, GEOMETRY) = (246, 247, 248, 252, 253, 254, 255)

#: bytes of metadata that each type has in a table map
METADATA_SIZE = {
    FLOAT: 1, DOUBLE: 1, VARCHAR: 2, BIT: 2, TIMESTAMP2: 1, DATETIME2: 1, TIME2: 1, VECTOR: 1, JSON: 1,
    NEWDECIMAL: 2, BLOB: 1, VAR_STRING: 2, STRING: 2, GEOMETRY: 1, TINY: 0, SHORT: 0, LONG: 0, LONGLONG: 0, INT24: 0,
    DATE: 0, YEAR: 0,
}  # fmt: skip
#: types whose sign is in the metadata; MySQL counts YEAR among them
SIGNED = frozenset({TINY, SHORT, INT24, LONG, LONGLONG, NEWDECIMAL, FLOAT, DOUBLE, YEAR})
#: types that have a character set in the metadata; MySQL counts VECTOR among them
CHARACTER = frozenset({STRING, VAR_STRING, VARCHAR, BLOB, VECTOR})
BINARY_COLLATION = 63

#: fields of the optional metadata. Source: MySQL's rows_event.h, Optional_metadata_field_type
(SIGN, DEFAULT_CHARSET, CHARSETS, NAMES, SETS, ENUMS, GEOMETRIES, KEY, KEY_OF_PREFIXES) = range(1, 10)
(MEMBER_DEFAULT_CHARSET, MEMBER_CHARSETS, DIMENSIONS) = (10, 11, 13)
