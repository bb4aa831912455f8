"""The wire form of values: what every MySQL column value looks like in an event.

    "Null"                                     SQL NULL
    {"SignedInteger":-1}                       TINYINT .. BIGINT
    {"UnsignedInteger":18446744073709551615}   the same, UNSIGNED
    {"Float":0.10000000149011612}              FLOAT, widened to a double, shortest digits that give it back
    {"Double":0.1}                             DOUBLE, shortest digits that give it back
    {"Decimal":"1.10"}                         DECIMAL, all digits of its scale
    {"String":"text"}                          CHAR, VARCHAR, TEXT whose bytes are UTF-8 in a UTF-8 or ASCII column
    {"EncodedString":{"charset":"latin1","base64":"gQ=="}}   the same in any other character set: the column's own bytes
    {"Blob":"AP8="}                            BINARY (all its bytes), VARBINARY, BLOB; base64
    {"Enum":2} {"Set":5} {"Bit":513}           index (0 is the error value), bit mask, unsigned number
    {"Year":1999}                              0 or 1901..2155
    {"Date":{"year":1999,"month":3,"day":30}}  zero and partial dates keep their zeros
    {"Time":{"hours":838,"minutes":59,"seconds":59,"subseconds":0}}   and "negative":true below zero
    {"DateTime":{"year":..,"month":..,"day":..,"hour":..,"minute":..,"second":..,"subsecond":..}}
    {"Timestamp":{"unix_time":1700000000,"subsecond":0}}   unix_time 0 is the zero timestamp
    {"Json":"[1, 2]"}                          JSON whose text gives the same document back
    {"JsonTyped":{"text":"[1.10]","typed":[["$[0]","decimal(3,2)","1.10"]]}}   JSON holding values that text would alter
    {"Geometry":"AAAAAAEB.."} {"Vector":"AACAPw=="}   SRID (4 bytes) + WKB; packed floats; base64

subsecond and subseconds are microseconds. In `typed` each entry is a JSON path, the SQL type that a CAST gives the
value at that path (decimal(P,S), date, time(6), datetime(6), signed, unsigned, double), and its text; the type
"binary" has base64.
"""

from __future__ import annotations

#: wire form of SQL NULL
NULL = "Null"

#: MySQL character sets whose bytes travel as String when they are valid UTF-8
UTF8_CHARSETS = frozenset({"utf8mb4", "utf8mb3", "utf8", "ascii"})

#: SQL types an entry of JsonTyped may name, as a regular expression
JSON_CASTS = r"decimal\(\d{1,2},\d{1,2}\)|date|time\(6\)|datetime\(6\)|signed|unsigned|double|binary"
