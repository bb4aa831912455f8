"""mysql-replication reading a binlog, in a process of its own: python iterate.py HOST PORT FILE OFFSET ROWS

Decodes every row image, ends after ROWS rows or at the end of the binlog, and writes the number of rows it has read.
"""

from __future__ import annotations

import sys

from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.row_event import RowsEvent


def main(host: str, port: str, file: str, offset: str, wanted: str) -> None:
    stream = BinLogStreamReader(
        {"host": host, "port": int(port), "user": "root", "password": ""},
        server_id=4_000_000_000,
        log_file=file,
        log_pos=int(offset),
        resume_stream=True,
        enable_logging=False,
    )
    count, end = 0, int(wanted)
    for event in stream:
        if isinstance(event, RowsEvent):
            for _ in event.rows:
                count += 1
            if count >= end:
                break
    stream.close()
    print(count)


if __name__ == "__main__":
    main(*sys.argv[1:])
