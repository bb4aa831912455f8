"""What the Fluvio engine reads when the cluster, the network or the client misbehaves."""

from __future__ import annotations

from contextlib import closing

import pytest
from kit.fluvio_double import FluvioDouble
from kit.fluvio_wire import Log
from kit.topic import VALUES, numbered, read, sealed

from shared.errors import OffsetGoneError, TopicError, TopicLinkError, TopicMissingError
from shared.profile import TopicSettings
from shared.topic import Record, fluvio_clerk
from shared.topic.fluvio_topic import FluvioReader, FluvioWriter
from shared.topic.fluvio_worker import STREAMS

pytest_plugins = ["fix_fluvio"]


def test_replies_cut_inside_a_batch(double: FluvioDouble, writer: FluvioWriter, reader: FluvioReader) -> None:
    """The wheel skips the rest of each batch that was cut, without a word."""
    values = [b"%0100d" % number for number in range(2000)]
    for start in range(0, 2000, 50):
        writer.append(sealed(values[start : start + 50]))
    assert len(double.logs["t-1"].batches) == 40, "what is appended at once is stored whole or not at all"
    double.reply_bytes = 3 * len(double.logs["t-1"].batches[0][2]) + 999
    double.opened = 0
    assert read(reader, 2000) == numbered(values)
    assert double.opened > 10


def test_a_backlog_that_takes_many_streams(double: FluvioDouble, writer: FluvioWriter, reader: FluvioReader) -> None:
    """More than one worker opens."""
    values = [bytes([number]) * 1000 for number in range(240)]
    for start in range(0, 240, 2):
        writer.append(sealed(values[start : start + 2]))
    double.reply_bytes = 3000
    double.opened = 0
    assert read(reader, 240) == numbered(values)
    assert double.opened > STREAMS


def test_the_last_batch_cut(double: FluvioDouble, writer: FluvioWriter, reader: FluvioReader) -> None:
    """No later record shows the skip; silence before the end does."""
    values = [b"%0100d" % number for number in range(100)]
    writer.append(sealed(values[:50]))
    writer.append(sealed(values[50:]))
    double.reply_bytes = sum(len(batch) for _, _, batch in double.logs["t-1"].batches) - 1000
    assert len(read(reader, 100, seconds=8)) == 100


def test_records_left_out_of_a_backlog(double: FluvioDouble, writer: FluvioWriter, reader: FluvioReader) -> None:
    for value in VALUES:
        writer.append(sealed([value]))
    double.skip = 1
    assert [record.value for record in read(reader, 4)] == VALUES
    assert double.skip is None


def test_a_slow_link(double: FluvioDouble, writer: FluvioWriter, reader: FluvioReader) -> None:
    """A large reply that takes its time is on its way, though nothing of it was heard."""
    writer.append(sealed(VALUES))
    double.delay = 1.6
    assert read(reader, 4) == numbered(VALUES)


def test_a_batch_no_reply_can_hold(
    double: FluvioDouble, writer: FluvioWriter, reader: FluvioReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fluvio_clerk, "STALL_SECONDS", (0.5, 0.5))
    writer.append(sealed([b"small"]))
    writer.append(sealed([bytes(5000)]))
    double.reply_bytes = 2000
    assert read(reader, 1) == [Record(0, b"small")]
    with pytest.raises(TopicError, match="offset 1 cannot be read, though it goes on to offset 2"):
        read(reader, 1)


def test_records_that_were_removed(double: FluvioDouble, writer: FluvioWriter, reader: FluvioReader) -> None:
    """The wheel's newer consumer would jump over them."""
    for value in VALUES:
        writer.append(sealed([value]))
    log: Log = double.logs["t-1"]
    log.start = 2
    del log.batches[:2]
    assert reader.first_offset() == 2
    reader.seek(1)
    with pytest.raises(OffsetGoneError, match=r"Offset 1 is evicted. The next available is 2"):
        read(reader, 1)
    reader.seek(2)
    assert read(reader, 2) == numbered(VALUES[2:], 2)


def test_a_connection_that_breaks_while_reading(
    double: FluvioDouble, writer: FluvioWriter, reader: FluvioReader
) -> None:
    writer.append(sealed(VALUES[:2]))
    assert len(read(reader, 2)) == 2
    double.disconnect()
    with pytest.raises(TopicLinkError):
        read(reader, 1)
    with closing(FluvioWriter(reader._topic.settings)) as again:
        again.append(sealed(VALUES[2:]))
    assert read(reader, 2) == numbered(VALUES[2:], 2)


def test_a_stream_that_dies_without_a_word(
    double: FluvioDouble, writer: FluvioWriter, topic: TopicSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fluvio_clerk, "IDLE_SECONDS", 0.5)
    with closing(FluvioReader(topic)) as reader:
        writer.append(sealed(VALUES[:1]))
        assert read(reader, 1) == [Record(0, b"0")]
        double.streaming = False
        writer.append(sealed(VALUES[1:2]))
        assert reader.read(0.2) == []
        double.streaming = True  # for streams opened from now on
        assert read(reader, 1, seconds=8) == [Record(1, b"1")]


def test_a_topic_deleted_and_created_anew(double: FluvioDouble, writer: FluvioWriter, reader: FluvioReader) -> None:
    writer.append(sealed(VALUES))
    assert len(read(reader, 4)) == 4
    double.logs["t-1"] = Log("t-1")
    double.disconnect()
    with pytest.raises(TopicLinkError):
        read(reader, 1)
    with pytest.raises(TopicLinkError, match="ends at offset 0, before 4"):
        read(reader, 1)
    del double.logs["t-1"]
    double.disconnect()
    with pytest.raises(TopicMissingError, match="it does not exist; start its producer first"):
        FluvioReader(reader._topic.settings)
    for ask in (reader.next_offset, writer.last):
        with pytest.raises(TopicMissingError, match="it was deleted; its producer makes it anew"):
            ask()
