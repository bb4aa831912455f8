"""Says the sentences of the report, and writes its numbers."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timezone

from cdc_consumer.parity.model import Evidence, Kind, Stage, TableResult, Verdict
from cdc_consumer.parity.report.tally import Cause, Tally
from cdc_consumer.parity.run_model import COUNTED, Run

KINDS: dict[Kind, str] = {
    "missing": "only the leader has the row",
    "extra": "only the follower has the row",
    "changed": "both have the row, with other values",
    "copies": "a table without a key holds another number of copies of the row",
}
STAGES: dict[Stage, str] = {
    "never published": "The change never reached the topic: look at the producer and its filters.",
    "published but not applied": "The topic holds the change and the follower does not: look at the consumer.",
    "applied wrongly, or changed on the follower afterwards": "The follower's row is not what the row's last event "
    "holds, nor what it was before. Either the consumer applied the event wrongly, or somebody else has written "
    "the row since.",
    "follower written by a stranger": "Leader and topic agree; somebody else wrote the follower's row.",
    "unknown": "The topic does not tell which part failed.",
}
#: stage -> what became of the row, where its name does not say it
_BECAME: dict[Stage, str] = {"follower written by a stranger": "written by a stranger on the follower"}
VERDICTS: dict[Verdict, str] = {
    "equal": "Every row of both sides was hashed with SHA-256, and whatever did not agree at first was settled.",
    "different": "At least one row is proven different: it stayed different after the follower had reached a fence, a "
    "position of the leader's binlog taken after the row was read, and nothing on its way explains it.",
    "undecided": "Nothing is proven different, but something could be proven neither way; the reason is given. "
    "It is never counted as a difference.",
    "skipped": "The table was not compared; the reason is given. A run with a skipped table is never called equal.",
}
PROOFS = {
    "no event": "between the leader's first and second read no event of the topic wrote the row, so nothing on its way "
    "to the follower explains the difference",
    "after-image": "the row is written all the time; the follower's row is not the last image the topic holds of it at "
    "the position the follower was read at",
    "idle": "the leader wrote nothing at all between its first and second read",
}
#: grade -> what it means; the worst first
GRADES = {
    "breaking": "replication breaks, or rows do",
    "integrity": "a constraint is missing or another one",
    "behaviour": "something runs differently",
    "performance": "an index or the partitions differ",
    "cosmetic": "it changes nothing that matters",
    "expected": "the consumer made it so",
}
#: verdict or kind -> a sign that does not need colour
SIGNS = {
    "equal": "=", "different": "≠", "undecided": "?", "skipped": "/",
    "missing": "-", "extra": "+", "changed": "≠", "copies": "#",
}  # fmt: skip
#: of a changed row without a differing value
SAME_TEXT = (
    "Every value reads the same, and still the stored bits differ: the JSON numbers 1.5 as a decimal and 1.5 as a "
    "double, for example."
)
NO_PATTERN = "no known pattern"


def count(number: int, noun: str) -> str:
    """Say "1 row", "1,200 rows"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def sentence(text: str) -> str:
    """Say "It is so." of "it is so"."""
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"


def listed(parts: list[str]) -> str:
    """Say "a", "a and b", "a, b and c"."""
    return " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))


def duration(seconds: float) -> str:
    """Say "0.4 s", "12 s", "3 min 5 s", "2 h 10 min"."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def moment(microseconds: int) -> str:
    """Write a time in microseconds since 1970 as UTC."""
    try:
        text = datetime.fromtimestamp(microseconds // 1_000_000, timezone.utc).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, ValueError, OSError):
        return f"{microseconds} µs since 1970"
    return f"{text}.{microseconds % 1_000_000:06d} UTC"


def verdicts(run: Run) -> Counter[Verdict]:
    """Number of tables of each verdict."""
    return Counter(table.verdict for table in run.tables)


def left_out(run: Run) -> str:
    """Say how many transactions an operator has left out, and why the last one was."""
    last = run.omissions[-1]
    there = f"the last at sequence {last.last:,}, decided at the {last.side}"
    return f"{count(len(run.omissions), 'transaction')} left out by decision, {there}: {last.reason}"


def counted_schema(run: Run) -> int:
    """Return schema differences that make the follower different."""
    return sum(item.grade in COUNTED for item in run.schema)


def headline(run: Run) -> str:
    """Say the verdict in one sentence."""
    if run.verdict == "different":
        tables = sum(table.proven > 0 for table in run.tables)
        found = []
        if run.total_differences:
            found.append(f"{count(run.total_differences, 'row')} of {count(tables, 'table')}")
        if schema := counted_schema(run):
            found.append(count(schema, "schema difference"))
        so_far = " so far" if run.interrupted else ""
        return f"The follower differs from its leader{so_far}: {listed(found)}."
    if run.verdict == "equal":
        rows = sum(table.leader_rows for table in run.tables)
        part = " in the part compared" if run.options else ""
        return f"The follower equals its leader{part}: {count(len(run.tables), 'table')}, {count(rows, 'row')}."
    if run.interrupted:
        return "Interrupted: nothing is proven different so far, and the audit is not complete."
    return "Nothing is proven different, but the follower is not proven equal."


def reasons(run: Run, tally: Tally) -> list[str]:
    """Say why, the weightiest first: one sentence per cause, and one for all that is undecided."""
    found = [_cause(cause) for cause in tally.causes if cause.name]
    if unknown := sum(cause.rows for cause in tally.causes if not cause.name):
        found.append(f"{count(unknown, 'row')} {'follows' if unknown == 1 else 'follow'} {NO_PATTERN}.")
    found += _open_ends(run)
    late = run.rounds[0].suspects - sum(each.proven for each in run.rounds) if run.rounds else 0
    if run.verdict == "equal" and late:
        found.append(f"{count(late, 'row')} differed at first and {'was' if late == 1 else 'were'} merely late.")
    if not run.tables:
        found.append("No row was compared: neither server has a table in the filters.")
    if run.repair:
        found.append(f"A repair came first: {run.repair}.")
    if run.options:
        found.append(f"Only a part was compared: {options(run)}.")
    return found


def _cause(cause: Cause) -> str:
    stage, rows = cause.stages.most_common(1)[0]
    told = f"{count(cause.rows, 'row')} {'has' if cause.rows == 1 else 'have'} one cause: {cause.name}."
    if stage == "unknown":
        return told
    subject = "Most were" if rows < cause.rows else "It was" if rows == 1 else "They were"
    return f"{told} {subject} {_BECAME.get(stage, stage)}."


def _open_ends(run: Run) -> list[str]:
    """What is neither equal nor different: with each reason, or in one sentence beside proven differences."""
    undecided = Counter(item.reason for item in run.undecided)
    skipped = Counter(table.reason for table in run.tables if table.verdict == "skipped")
    kinds = (("case", "undecided", undecided), ("table", "skipped", skipped))
    if run.verdict == "different":
        parts = [f"{_are(reasons.total(), noun)} {end}" for noun, end, reasons in kinds if reasons]
        return [f"Besides, {listed(parts)}."] if parts else []
    return [
        f"{_are(number, noun)} {end}: {reason.rstrip('.')}."
        for noun, end, reasons in kinds
        for reason, number in reasons.most_common()
    ]


def _are(number: int, noun: str) -> str:
    """ "1 row is", "1,200 rows are" """
    return f"{count(number, noun)} {'is' if number == 1 else 'are'}"


def undecided(rows: int) -> str:
    """Say "1 row is undecided"."""
    return f"{_are(rows, 'row')} undecided"


def options(run: Run) -> str:
    """Say what narrowed the run."""
    return listed([f"--{name} {value}" for name, value in run.options.items()])


def proven(table: TableResult) -> Counter[Kind]:
    """Return rows of a table proven different, by kind."""
    return Counter({"missing": table.missing, "extra": table.extra, "changed": table.changed, "copies": table.copies})


def kinds(counts: Counter[Kind]) -> str:
    """Say "31,204 missing, 1 extra"."""
    return ", ".join(f"{counts[kind]:,} {kind}" for kind in KINDS if counts[kind])


def proof(evidence: Evidence) -> str:
    """Say why the row is believed to differ."""
    rounds = "once" if evidence.rounds == 1 else f"in {evidence.rounds:,} rounds"
    return (
        f"Seen {rounds}. The leader was read after {evidence.before}, the fence was {evidence.fence}, and the follower "
        f"had reached {evidence.follower} when its row was read. Proof: {PROOFS[evidence.proof]} ({evidence.before} to "
        f"{evidence.after})."
    )


def copies(number: int) -> str:
    """Say "no copy", "1 copy", "3 copies"."""
    return "no copy" if not number else f"{number:,} cop{'y' if number == 1 else 'ies'}"
