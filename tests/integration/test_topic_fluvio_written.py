"""What the Fluvio engine writes when the cluster, the network or another producer misbehaves."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

import pytest
from kit import fluvio_wire as wire
from kit.fluvio_double import FluvioDouble
from kit.fluvio_wire import Log
from kit.topic import VALUES, read, sealed

from shared.errors import RecordTooLargeError, TopicError, TopicLinkError
from shared.profile import TopicSettings
from shared.topic import Record, fluvio_parts
from shared.topic.fluvio_topic import FluvioReader, FluvioWriter

pytest_plugins = ["fix_fluvio"]


def test_a_connection_lost_with_the_request_stored(
    double: FluvioDouble, writer: FluvioWriter, open_writer: Callable[[], FluvioWriter], impatient: None
) -> None:
    with closing(open_writer()) as victim:
        victim.append(sealed(VALUES[:1]))
        double.produce.append("stored")
        with pytest.raises(TopicLinkError):
            victim.append(sealed(VALUES[1:]))
        with pytest.raises(TopicLinkError, match="open a new one"):
            victim.append(sealed(VALUES[1:]))
    assert open_writer().last() == Record(3, b"3")
    assert double.logs["t-1"].end == 4


def test_a_connection_lost_with_the_request_lost_leaves_no_hole(
    double: FluvioDouble, open_writer: Callable[[], FluvioWriter], impatient: None
) -> None:
    """Of three chunks the second is lost. The wheel alone would send the third all the same."""
    chunks = [bytes([number]) * 700_000 for number in range(3)]
    double.produce.extend(["ok", "lost"])
    with pytest.raises(TopicLinkError):
        open_writer().append(sealed(chunks))
    assert double.stored == 2
    writer = open_writer()
    assert writer.last() == Record(0, chunks[0])
    writer.append(sealed(chunks[1:]))
    assert writer.last() == Record(2, chunks[2])


def test_an_answer_that_never_comes(
    double: FluvioDouble, open_writer: Callable[[], FluvioWriter], impatient: None
) -> None:
    """The wheel would send the request again, and the cluster store it again."""
    double.produce.append("silent")
    with pytest.raises(TopicLinkError, match=r"no answer within [2-4] s"):
        open_writer().append(sealed(VALUES))
    assert double.stored == 1
    assert open_writer().last() == Record(3, b"3")


def test_a_request_stored_twice(
    double: FluvioDouble, writer: FluvioWriter, reader: FluvioReader, open_writer: Callable[[], FluvioWriter]
) -> None:
    """It cannot be undone: writing continues after the copy, and the consumer drops it by its sequences."""
    double.produce.append("twice")
    with pytest.raises(TopicLinkError, match=r"at offset 4 instead of 0: another producer .* twice"):
        writer.append(sealed(VALUES))
    again = open_writer()
    assert again.last() == Record(7, b"3")
    again.append(sealed([b"4"]))
    assert [record.value for record in read(reader, 9)] == [*VALUES, *VALUES, b"4"]


def test_a_second_producer(writer: FluvioWriter, open_writer: Callable[[], FluvioWriter]) -> None:
    """Fluvio cannot keep it out. The first writer notices."""
    writer.append(sealed(VALUES[:1]))
    open_writer().append(sealed([b"foreign"]))
    with pytest.raises(TopicLinkError, match="at offset 2 instead of 1: another producer"):
        writer.append(sealed(VALUES[1:]))


def test_a_replica_that_is_late(
    double: FluvioDouble,
    writer: FluvioWriter,
    reader: FluvioReader,
    open_writer: Callable[[], FluvioWriter],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The records are stored all the same: nothing is sent again, and the next batch follows at once."""
    caplog.set_level("INFO")
    double.produce.extend(["late", "late"])
    for number in range(4):
        writer.append(sealed([b"%d" % number, b"and more"]))
    assert double.stored == 4
    assert [record.value for record in read(reader, 8)] == [v for n in range(4) for v in (b"%d" % n, b"and more")]
    words = [message.partition(": ")[2] for message in caplog.messages]
    assert words[0] == "stored, but not on every replica in time: an SPU is away or slow; going on, more slowly"
    assert words[1].startswith("every replica is in time again after ") and len(words) == 2
    assert open_writer().last() == Record(7, b"and more")


def test_a_late_replica_does_not_hide_another_producer(
    double: FluvioDouble, writer: FluvioWriter, open_writer: Callable[[], FluvioWriter]
) -> None:
    writer.append(sealed(VALUES[:1]))
    open_writer().append(sealed([b"foreign"]))
    double.produce.append("late")
    with pytest.raises(TopicLinkError, match="at offset 3 instead of 2: another producer"):
        writer.append(sealed(VALUES[1:2]))


def test_parts_without_their_last_are_passed_over(
    double: FluvioDouble,
    topic: TopicSettings,
    open_writer: Callable[[], FluvioWriter],
    reader: FluvioReader,
    monkeypatch: pytest.MonkeyPatch,
    impatient: None,
) -> None:
    """Of a record of three parts only some arrive; the next producer sends it whole, behind them."""
    monkeypatch.setattr(fluvio_parts, "PART_BYTES", 1 << 20)
    value = bytes(range(256)) * 4096 * 2 + b"rest"
    open_writer().append(sealed([b"before"]))
    for stored in (1, 2):
        double.produce.extend(["ok"] * stored + ["lost"])
        with pytest.raises(TopicLinkError):
            open_writer().append(sealed([value]))
        assert open_writer().last() == Record(0, b"before")
        assert reader.next_offset() == 1
    assert read(reader, 2, 1.0) == [Record(0, b"before")]
    open_writer().append(sealed([value, b"after"]))
    assert double.logs["t-1"].end == 1 + 1 + 2 + 3 + 1
    assert read(reader, 2) == [Record(6, value), Record(7, b"after")]
    for offset in range(1, 7):
        reader.seek(offset)
        assert read(reader, 1)[0] == Record(6, value)
    assert open_writer().last() == Record(7, b"after")


def test_the_first_part_was_removed(
    double: FluvioDouble, writer: FluvioWriter, reader: FluvioReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fluvio_parts, "PART_BYTES", 1 << 20)
    writer.append(sealed([bytes(3 << 20), b"after"]))
    log: Log = double.logs["t-1"]
    log.start = 1
    del log.batches[:1]
    assert reader.first_offset() == 4
    reader.seek(1)
    assert read(reader, 1) == [Record(4, b"after")]


@pytest.mark.parametrize(
    ("code", "error", "text"),
    [
        (wire.TOO_LARGE, RecordTooLargeError, "too large"),
        (wire.partition_full("t-1"), TopicError, "storage is full"),
        (wire.STORAGE, TopicError, "storage error"),
        (wire.SHORT_CIRCUIT, TopicError, "short-circuited"),
        (wire.NOT_LEADER, TopicLinkError, "not the leader"),
    ],
    ids=["too large", "full", "storage", "short-circuit", "not leader"],
)
def test_a_refusal(
    double: FluvioDouble,
    open_writer: Callable[[], FluvioWriter],
    code: bytes,
    error: type[TopicError],
    text: str,
) -> None:
    """The wheel's flush succeeds; only the wait for each record tells."""
    writer = open_writer()
    writer.append(sealed(VALUES[:1]))
    double.produce.append(code)
    with pytest.raises(error, match=text) as caught:
        writer.append(sealed(VALUES[1:]))
    assert type(caught.value) is error
    again = open_writer()
    assert again.last() == Record(0, b"0")
    again.append(sealed(VALUES[1:]))


def test_a_server_that_does_not_lead_yet(
    double: FluvioDouble, writer: FluvioWriter, open_writer: Callable[[], FluvioWriter]
) -> None:
    """Asked plainly, it says that the topic ends at 0, as an empty topic does."""
    writer.append(sealed(VALUES))
    double.not_leader = 4
    again = open_writer()
    assert double.not_leader == 0
    double.not_leader = 2
    assert again.last() == Record(3, b"3")


def test_a_server_that_never_leads(double: FluvioDouble, writer: FluvioWriter) -> None:
    writer.append(sealed(VALUES))
    double.not_leader = 1 << 30
    with pytest.raises(TopicLinkError, match="not the leader"):
        writer.last()
