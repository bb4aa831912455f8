"""Files of SQL for several sessions, in MySQL's test language: read into steps, and written from them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

#: the session that a file begins in
FIRST = "default"
#: the server whose statements count; those for any other one are skipped
LEADERS = ("default", "master", "master1", "source", "source1", "server_1")
OTHERS = re.compile(r"(slave|replica|server_[2-9])\w*")
#: sourced files that do nothing but change the session
SOURCED = (
    (re.compile(r"(connection_(source|master)|rpl_connection_(source|master))\.inc$"), "master"),
    (re.compile(r"(connection_(replica|slave)|sync_to_replica|sync_slave_sql_with_master|sync_to_slave)\w*\.inc$"), "slave"),
)  # fmt: skip

#: commands that give the rest of the line, or of the text up to the delimiter, to the server
SENDING = {"eval", "send", "send_eval", "query", "query_vertical", "query_horizontal", "query_attributes"}
#: commands that run a block, which may be run never, once or often
BLOCKS = {"while", "if"}
#: commands followed by lines up to one that says EOF, or another word that is given
INLINE = {"perl", "write_file", "append_file"}
#: those that send nothing
IGNORED = """
    assert cat_file change_user character_set chmod connect connection copy_file copy_files_wildcard dec
    delimiter die diff_files dirty_close disable_abort_on_error disable_async_client disable_connect_log
    disable_info disable_metadata disable_parsing disable_ps2_protocol disable_ps_protocol disable_query_log
    disable_reconnect disable_result_log disable_session_track_info disable_testcase disable_warnings disconnect
    echo enable_abort_on_error enable_async_client enable_connect_log enable_info enable_metadata enable_parsing
    enable_ps2_protocol enable_ps_protocol enable_query_log enable_reconnect enable_result_log
    enable_session_track_info enable_testcase enable_warnings end_timer error exec exec_in_background exec_raw
    execw exit expr file_exists force_cpdir force_rmdir horizontal_results inc let list_files
    list_files_append_file list_files_write_file lowercase_result mkdir move_file output partially_sorted_result
    ping query_get_value query_sorted real_sleep reap remove_file remove_files_wildcard replace_column
    replace_numeric_round replace_regex replace_result require reset_connection result_format rmdir
    save_master_pos send_quit send_shutdown shutdown_server skip skip_if_hypergraph sleep sorted_result source
    start_timer sync_slave_with_master sync_with_master vertical_results wait_for_slave_to_stop
"""
COMMANDS = {*SENDING, *BLOCKS, *INLINE, *IGNORED.split()}

WORD = re.compile(rb"[A-Za-z_][A-Za-z_0-9]*")
VARIABLE = re.compile(rb"\$([A-Za-z_][A-Za-z_0-9]*)")


class Step(NamedTuple):
    """One statement of one session; None ends the session."""

    session: str
    sql: bytes | None


@dataclass(slots=True)
class Script:
    """What a file says to a leader, and how much of it could not be taken."""

    steps: list[Step] = field(default_factory=list)
    skipped: int = 0

    @property
    def taken(self) -> int:
        """How many statements there are."""
        return sum(step.sql is not None for step in self.steps)


def read_script(text: bytes) -> Script:
    """Take the SQL that a file says without a condition; what needs another server, a loop or a shell is skipped."""
    return _Reader(text).script()


def write_script(steps: Iterable[Step], heading: Iterable[str] = ()) -> bytes:
    """Steps as a file that `read_script` reads back; `heading` are lines of comment before them."""
    lines = [f"# {line}".encode() for line in heading]
    session, opened, delimiter = FIRST, {FIRST}, b";"
    for step in steps:
        if step.session not in opened and step.sql is not None:
            lines.append(f"--connect ({step.session},localhost,root,,)".encode())
            opened.add(step.session)
            session = step.session
        if step.sql is None:
            lines.append(f"--disconnect {step.session}".encode())
            opened.discard(step.session)
            continue
        if step.session != session:
            lines.append(f"--connection {step.session}".encode())
            session = step.session
        wanted = b"//" if b";" in step.sql else b";"
        if wanted != delimiter:
            lines.append(b"--delimiter " + wanted)
            delimiter = wanted
        lines.append(step.sql + delimiter)
    return b"\n".join(lines) + b"\n"


class _Reader:
    def __init__(self, text: bytes) -> None:
        self._text = text
        self._at = 0
        self._delimiter = b";"
        self._session = FIRST
        self._variables: dict[bytes, bytes] = {}
        self._depth = 0
        self._parsing = True
        self._script = Script()

    def script(self) -> Script:
        for command, rest in self._pieces():
            if command == "exit" and self._depth == 0:
                break
            self._piece(command, rest)
        return self._script

    # pieces: one command or one statement each

    def _pieces(self) -> Iterator[tuple[str, bytes]]:
        """A command, in lower case, and what follows it; a statement has the command ""."""
        while True:
            self._skip_space()
            if self._at >= len(self._text):
                return
            start = self._text[self._at : self._at + 2]
            if start[:1] == b"#":
                self._line()
            elif start == b"--":
                line = self._line()[2:]
                word, rest = _word(line.strip())
                # a plain comment has a space there in files that know no commands
                if word in COMMANDS:
                    yield word, rest
            elif start[:1] == b"}":
                self._at += 1
                self._depth = max(0, self._depth - 1)
            else:
                yield from self._statement()

    def _statement(self) -> Iterator[tuple[str, bytes]]:
        word, _ = _word(self._text[self._at : self._at + 40])
        if word in BLOCKS:
            opening = self._text.find(b"{", self._at)
            self._at = len(self._text) if opening < 0 else opening + 1
            self._depth += 1
            self._script.skipped += 1
        elif word == "delimiter":
            yield "delimiter", _word(self._line().strip())[1]
        else:
            statement = self._until_delimiter().strip()
            word, rest = _word(statement)
            yield (word, rest) if word in COMMANDS else ("", statement)

    def _line(self) -> bytes:
        end = self._text.find(b"\n", self._at)
        end = len(self._text) if end < 0 else end
        line, self._at = self._text[self._at : end], end + 1
        return line

    def _skip_space(self) -> None:
        while self._at < len(self._text) and self._text[self._at : self._at + 1].isspace():
            self._at += 1

    def _until_delimiter(self) -> bytes:
        """The text up to the delimiter, which is no part of a literal, a name or a comment."""
        start = self._at
        inner = re.compile(
            rb"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`|/\*(?![!+]).*?\*/|(?:--[ \t]|\#)[^\n]*\n|"""
            + re.escape(self._delimiter),
            re.DOTALL,
        )
        for found in inner.finditer(self._text, start):
            if found[0] == self._delimiter:
                self._at = found.end()
                return self._text[start : found.start()]
        self._at = len(self._text)
        return self._text[start:]

    # what they do

    def _piece(self, command: str, rest: bytes) -> None:
        if command in INLINE:
            self._inline(command, rest)
        elif command == "delimiter":
            self._delimiter = rest.strip().removesuffix(self._delimiter).strip() or self._delimiter
        elif command in ("disable_parsing", "enable_parsing"):
            self._parsing = command == "enable_parsing"
        elif command == "" or command in SENDING:
            self._sql(rest, evaluated=command in ("eval", "send_eval"))
        elif self._depth == 0 and self._parsing:
            self._control(command, rest.decode("latin-1").strip().removesuffix(";").strip())

    def _inline(self, command: str, rest: bytes) -> None:
        words = rest.replace(b";", b" ").split()
        given = words[0:1] if command == "perl" else words[1:2]
        end = given[0] if given else b"EOF"
        while self._at < len(self._text) and self._line().strip() != end:
            pass

    def _sql(self, statement: bytes, *, evaluated: bool) -> None:
        if not statement:
            return
        if evaluated:
            statement = VARIABLE.sub(lambda found: self._variables.get(found[1], found[0]), statement)
            if VARIABLE.search(statement):
                self._script.skipped += 1
                return
        if self._depth or not self._parsing or OTHERS.fullmatch(self._session):
            self._script.skipped += 1
        else:
            self._script.steps.append(Step(self._session, statement))

    def _control(self, command: str, rest: str) -> None:
        if command == "connect":
            self._connect([part.strip() for part in rest.strip("()").split(",")])
        elif command == "connection":
            self._session = FIRST if rest in LEADERS else rest
        elif command == "disconnect" and not OTHERS.fullmatch(rest):
            self._script.steps.append(Step(FIRST if rest in LEADERS else rest, None))
        elif command in ("sync_slave_with_master", "sync_with_master"):
            self._session = "slave"
        elif command == "let":
            self._let(rest)
        elif command == "source":
            self._session = next((name for file, name in SOURCED if file.search(rest)), self._session)
            self._session = FIRST if self._session in LEADERS else self._session

    def _connect(self, parts: list[str]) -> None:
        name, _, _, _, database = (*parts, "", "", "", "", "")[:5]
        self._session = FIRST if name in LEADERS else name
        if database and "$" not in database and database.upper() != "*NO-ONE*" and not OTHERS.fullmatch(name):
            self._script.steps.append(Step(self._session, f"USE `{database}`".encode("latin-1")))

    def _let(self, rest: str) -> None:
        """Remember a literal value; one that a server would have to tell makes the variable unknown."""
        name, _, value = rest.partition("=")
        key, value = name.strip().removeprefix("$").encode("latin-1"), value.strip()
        if key == b"rpl_connection_name":
            self._session = FIRST if value in LEADERS else value
        if "`" in value or value.startswith(("query_get_value", "convert_error")) or "$" in value:
            self._variables.pop(key, None)
        else:
            self._variables[key] = value.encode("latin-1")


def _word(text: bytes) -> tuple[str, bytes]:
    """The word a text begins with, in lower case, and the rest; "" and all of it when it begins with none."""
    found = WORD.match(text)
    if found is None:
        return "", text
    return found[0].decode().lower(), text[found.end() :].strip()
