"""Holds what an operator decides about a transaction that stops the replay: to leave it out, and what stands for it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from shared.errors import ProfileError, UnsupportedError
from shared.program import kept_reason
from shared.statements.heads import read_statement
from shared.statements.tokens import Tokens, Unreadable

#: bytes of a file of statements at most
FILE_BYTES = 1 << 24
#: what runs inside of the transaction; any other statement commits by itself
ROW_VERBS = frozenset({"INSERT", "UPDATE", "DELETE", "REPLACE"})

#: what an error names beside the repair, where it stops at one transaction; it tells the sequence itself
WAY_PAST = "or leave the transaction of its sequence out with cdc-consumer --skip"
#: and where it stops at what no producer writes
FOREIGN = f"find out who else writes to the topic, {WAY_PAST}"


@dataclass(frozen=True, slots=True)
class Decision:
    """Names the transaction to leave out by the sequence of one of its events."""

    sequence: int
    reason: str
    #: statements in its place: any number that change rows, or one that commits by itself
    instead: tuple[bytes, ...] = ()

    @property
    def commits_by_itself(self) -> bool:
        """Tell whether what stands in the transaction's place is a statement that commits by itself."""
        return len(self.instead) == 1 and not _changes_rows(self.instead[0])

    @property
    def text(self) -> str | None:
        """Return the statements as one text, None without any."""
        return ";\n".join(sql.decode(errors="replace") for sql in self.instead) or None


def read_decision(sequence: int, reason: str | None, file: str | None) -> Decision:
    """Read a decision from the command's options; `file` holds the statements. Raises ProfileError."""
    kept = kept_reason(reason)
    if sequence < 0:
        raise ProfileError(f"--skip must name a sequence, not {sequence}")
    instead = () if file is None else _statements(file)
    if not all(map(_changes_rows, instead)) and len(instead) > 1:
        raise ProfileError(
            f"{file} must hold statements that change rows ({', '.join(sorted(ROW_VERBS))}), or one other statement:"
            " only then is all of it one transaction"
        )
    return Decision(sequence, kept, instead)


def _statements(file: str) -> tuple[bytes, ...]:
    try:
        text = Path(file).read_bytes()
    except (OSError, ValueError) as error:
        raise ProfileError(f"--instead: {file} cannot be read: {error}") from None
    if len(text) > FILE_BYTES:
        raise ProfileError(f"--instead: {file} is larger than {FILE_BYTES} bytes")
    try:
        found = _split(text)
    except Unreadable as problem:
        raise ProfileError(f"--instead: {file} cannot be read as SQL: {problem}") from None
    if not found:
        raise ProfileError(f"--instead: {file} holds no statement")
    return found


def _split(text: bytes) -> tuple[bytes, ...]:
    """Cut a text at its semicolons, but not that of a statement with a body."""
    tokens = Tokens(text, 0, "utf8mb4")
    start = end = 0
    while tokens.word == ";":
        start = end = tokens.end
        tokens.advance()
    if not tokens.at_end and not _changes_rows(text[tokens.start :]):
        return (text[start:].strip().rstrip(b";"),)
    found = []
    while True:
        if tokens.at_end or tokens.word == ";":
            stop = len(text) if tokens.at_end else tokens.start
            if end > start:
                # a comment behind the last word may reach to the end of its line, and others stand behind it there
                found.append(text[start:stop].strip() + (b"\n" if text[end:stop].strip() else b""))
            if tokens.at_end:
                return tuple(found)
            start = stop + 1
        else:
            end = tokens.end
        tokens.advance()


def _changes_rows(sql: bytes) -> bool:
    try:
        return read_statement(sql, 0, "").verb in ROW_VERBS
    except UnsupportedError:
        return False
