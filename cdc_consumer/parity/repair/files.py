"""Writes SQL files for the mysql client: repair.sql and undo.sql of rows, schema-repair.sql of definitions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from cdc_consumer.parity.repair.plan import Chunk, Plan
from cdc_consumer.parity.repair.statements import RELAXED, STRICT, session, statements
from cdc_consumer.parity.schema.alters import SESSION
from cdc_consumer.parity.schema.order import Mend, delimited
from cdc_consumer.sql.literals import encode

REPAIR = "repair.sql"
UNDO = "undo.sql"
SCHEMA = "schema-repair.sql"
#: seconds a statement waits for a lock before the client stops with an error
LOCK_SECONDS = 5

_HOW = """\
Apply it with the mysql client, which must not alter a byte, and stop at the first error:

    mysql --binary-mode --default-character-set=utf8mb4 --max-allowed-packet=1G -h HOST -P PORT -u USER -p < {file}

Each statement names the hash of the row it expects: a row that {expected} is left alone. The last line
of the output tells how many rows were changed and how many were left alone. A file that stopped can be applied again:
what is done is left alone. Never use --force: after an error the rest of a transaction must not be committed.
"""
_BOUND = """
It is for the follower as far as the audit saw it come. Once the consumer has applied more, each transaction stops with
an error and changes nothing: the leader may have made a row right since, or removed it. Then run cdc-parity --repair,
which asks the topic of each row, or audit again with the consumer stopped, and apply that file before you start it.
"""
_UNBOUND = """
It does not look at what the leader wrote since.
"""
_HOW_SCHEMA = """\
Stop the consumer, apply the file with the mysql client, which must not alter a byte, and start the consumer again:

    mysql --binary-mode --comments --default-character-set=utf8mb4 -h HOST -P PORT -u USER -p < {file}

Each statement stands below the differences it mends. MySQL commits each of them by itself: after an error what was done
stays done, and the next audit writes a file of what is left.

A statement that would remove a database, a table or a column with all that is in it is commented out, and so is one
that has to wait for it. Read them; this runs them too:

    sed 's/^{held}//' {file} | mysql ...
"""
#: before each line of a statement that is commented out
HELD = "-- # "
_HIDDEN = """\
The follower has GTIDs and a binlog. sql_log_bin = 0 keeps the changes out of that binlog, where they would be
transactions that the leader does not know. Replicas of the follower do not get them: apply the file to each.
Needs the privilege SESSION_VARIABLES_ADMIN.
"""


@dataclass(frozen=True, slots=True)
class Header:
    """Holds what the files say of themselves."""

    #: id of the run that found the differences
    run: str
    #: the follower's address
    follower: str
    #: as in preflight.Facts
    hides_own_writes: bool
    #: a statement that fails once the follower is no longer where the rows were proven, see `FollowerConnection.still`
    still: str = ""


def write_files(plan: Plan, folder: Path, header: Header) -> tuple[Path, Path]:
    """Write both files into the folder. Raises OSError."""
    repair, undo = folder / REPAIR, folder / UNDO
    what = f"Makes the follower {header.follower} equal to its leader where the audit {header.run} proved it different."
    back = f"Takes back what {REPAIR} of the audit {header.run} changed on the follower {header.follower}."
    how = _HOW.format(file=REPAIR, expected="has moved since the audit") + (_BOUND if header.still else "")
    _write(repair, _row_head(what, how, header, _remarks(plan)), plan.chunks(), header.still)
    how = _HOW.format(file=UNDO, expected="is not what that file made it") + _UNBOUND
    _write(undo, _row_head(back, how, header, _undo_remarks(plan)), plan.undo_chunks())
    return repair, undo


def write_schema_file(mends: Sequence[Mend], folder: Path, header: Header) -> Path:
    """Write what mends the follower's schema into the folder. Raises OSError."""
    path = folder / SCHEMA
    what = f"Makes the schema of the follower {header.follower} its leader's, as the audit {header.run} found both."
    settings = [SESSION, "SET SESSION sql_log_bin = 0"] if header.hides_own_writes else [SESSION]
    head = _head([what, "", *_HOW_SCHEMA.format(file=SCHEMA, held=HELD).splitlines()], header, settings)
    with _replacing(path) as file:
        file.write(encode("\n\n".join([head.rstrip(), *map(_mend, mends), ""])))
    return path


def _mend(mend: Mend) -> str:
    remarks = [*mend.mends]
    if mend.loses:
        remarks.append(f"COMMENTED OUT because it removes {' and '.join(mend.loses)} with all that is in it:")
    elif mend.waits:
        remarks.append("COMMENTED OUT because it needs a statement above that is commented out:")
    lines = "\n".join(map(delimited, mend.sql)).split("\n")
    held = HELD if mend.loses or mend.waits else ""
    return "\n".join([*(f"-- {_line(remark)}" for remark in remarks), *(f"{held}{line}" for line in lines)])


def _remarks(plan: Plan) -> Iterator[str]:
    for (table, reason), number in sorted(plan.refused.items()):
        yield f"{number:,} {'row' if number == 1 else 'rows'} of {table} cannot be repaired: {reason}"


def _undo_remarks(plan: Plan) -> Iterator[str]:
    for target in plan.targets:
        if target.outside:
            yield f"rows deleted from {target.shape.name} come back with the defaults of: {', '.join(target.outside)}"


def _row_head(what: str, how: str, header: Header, remarks: Iterable[str]) -> str:
    told = [what, "", *how.splitlines()]
    settings = [*session(header.hides_own_writes, LOCK_SECONDS), "SET @done = 0"]
    return _head(told, header, settings, list(remarks))


def _head(told: Sequence[str], header: Header, settings: Sequence[str], remarks: Sequence[str] = ()) -> str:
    parts = [*told]
    parts += ["", *_HIDDEN.splitlines()] if header.hides_own_writes else []
    parts += ["", *remarks] if remarks else []
    return "\n".join([*(f"-- {_line(part)}".rstrip() for part in parts), "", *(f"{sql};" for sql in settings), ""])


def _line(text: str) -> str:
    """Text that cannot leave the comment it stands in."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


@contextmanager
def _replacing(path: Path) -> Iterator[IO[bytes]]:
    """A file that is there is whole."""
    partial = path.with_name(path.name + ".partial")
    with partial.open("wb") as file:
        yield file
    partial.replace(path)


def _write(path: Path, head: str, chunks: Iterable[Chunk], still: str = "") -> None:
    with _replacing(path) as file:
        file.write(encode(head))
        if still:
            # before anything else, so that nothing else is what stops the file
            file.write(encode(f"{still};\n"))
        expected = sum(_write_chunk(file, chunk, still) for chunk in chunks)
        file.write(encode(f"\nSELECT @done AS rows_changed, {expected} - @done AS rows_left_alone;\n"))


def _write_chunk(file: IO[bytes], chunk: Chunk, still: str) -> int:
    """Returns the number of rows it changes when none has moved.

    Where the follower is stands last: nobody can write the rows then, and what was applied before shows.
    """
    file.write(b"\nSTART TRANSACTION;\n")
    expected = 0
    for statement in (statement for unit in chunk.units for statement in statements(chunk.target, unit)):
        sql = f"{statement.sql};\n"
        if statement.rows is not None:
            expected += statement.rows
            sql += "SET @done = @done + ROW_COUNT();\n"
        file.write(encode(f"{RELAXED};\n{sql}{STRICT};\n" if statement.relaxed else sql))
    if still:
        file.write(encode(f"{still};\n"))
    file.write(b"COMMIT;\n")
    return expected
