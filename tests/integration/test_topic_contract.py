"""What every topic engine must do, whichever it is.

The Fluvio engine runs against the double; against a real cluster too when CDC_TEST_FLUVIO names one (host:port).
"""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kit.fluvio_double import FluvioDouble
from kit.topic import CLUSTER, CLUSTER_TLS, numbered, read, sealed

from shared.errors import OffsetGoneError, TopicError, TopicLinkError, TopicMissingError
from shared.profile import TopicSettings
from shared.topic import Record, TopicReader, TopicWriter, batch, embedded, fluvio_parts, open_reader, open_writer

numbers = itertools.count(1)

#: gives the settings of a topic that does not exist yet
NewTopic = Callable[[], TopicSettings]


@pytest.fixture(scope="module", params=["embedded", "fluvio double", *(["fluvio cluster"] if CLUSTER else [])])
def new_topic(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NewTopic]:
    if request.param == "embedded":
        folder = str(tmp_path_factory.mktemp("topics"))
        yield lambda: TopicSettings(f"topic-{next(numbers)}", path=folder)
    elif request.param == "fluvio double":
        with FluvioDouble() as double:
            yield lambda: TopicSettings(f"topic-{next(numbers)}", backend="fluvio", endpoint=double.endpoint)
    else:
        run = f"{time.time_ns():x}"
        yield lambda: TopicSettings(f"test-{run}-{next(numbers)}", backend="fluvio", endpoint=CLUSTER, tls=CLUSTER_TLS)


@pytest.fixture
def topic(new_topic: NewTopic) -> TopicSettings:
    return new_topic()


@pytest.fixture
def writer(topic: TopicSettings) -> Iterator[TopicWriter]:
    with closing(open_writer(topic)) as found:
        yield found


@pytest.fixture
def reader(topic: TopicSettings, writer: TopicWriter) -> Iterator[TopicReader]:
    with closing(open_reader(topic)) as found:
        yield found


def test_a_real_cluster_takes_part() -> None:
    if CLUSTER is None:
        pytest.skip("CDC_TEST_FLUVIO names no cluster (host:port): Fluvio is tested against the double only")


def test_a_topic_nobody_wrote_to_is_missing(topic: TopicSettings) -> None:
    with pytest.raises(TopicMissingError, match=topic.name):
        open_reader(topic)


def test_an_empty_topic(writer: TopicWriter, reader: TopicReader) -> None:
    assert writer.last() is None
    assert reader.next_offset() == 0
    assert reader.first_offset() == 0
    started = time.monotonic()
    assert reader.read(0.3) == []
    assert 0.25 < time.monotonic() - started < 20


def test_records_come_back_in_order_with_dense_offsets(writer: TopicWriter, reader: TopicReader) -> None:
    values = [b"%d" % number for number in range(25)]
    writer.append(sealed(values[:1]))
    writer.append(sealed(values[1:20]))
    writer.append(sealed([]))
    writer.append(sealed(values[20:]))
    assert read(reader, 25) == numbered(values)
    assert reader.next_offset() == 25
    assert writer.last() == Record(24, b"24")


def test_every_byte_survives(writer: TopicWriter, reader: TopicReader) -> None:
    values = [bytes(range(256)), b"", b"\0", "ä\n\r\t€".encode(), b"\xff" * 3, b""]
    writer.append(sealed(values))
    assert read(reader, 6) == numbered(values)
    assert writer.last() == Record(5, b"")


def test_big_records_and_small_ones(writer: TopicWriter, reader: TopicReader) -> None:
    source = random.Random(1)
    values = [source.randbytes(size) for size in (10, 5 << 20, 20, 1 << 20, (1 << 20) - 200, 30, 9 << 20, 0, 40)]
    writer.append(sealed(values))
    found = read(reader, len(values))
    assert [record.value for record in found] == values
    assert writer.last() == found[-1]
    assert reader.next_offset() == found[-1].offset + 1


def test_many_small_records(writer: TopicWriter, reader: TopicReader) -> None:
    values = [b'{"number":%d}' % number for number in range(30_000)]
    writer.append(sealed(values[:1000]))
    writer.append(sealed(values[1000:]))
    assert read(reader, len(values)) == numbered(values)


def test_a_waiting_reader_sees_a_new_record_quickly(writer: TopicWriter, reader: TopicReader) -> None:
    assert reader.read(0.5) == []  # whatever must be set up is set up
    delays = []
    sent = 0.0

    def append() -> None:
        nonlocal sent
        sent = time.monotonic()
        writer.append(sealed([b"x"]))

    for number in range(10):
        (timer := threading.Timer(0.05, append)).start()
        records = reader.read(10)
        delays.append(time.monotonic() - sent)
        timer.join()
        assert [record.offset for record in records] == [number]
    # a busy machine is slow now and then
    assert sorted(delays)[1] < 0.25, delays


def test_readers_are_independent(topic: TopicSettings, writer: TopicWriter) -> None:
    values = [b"%d" % number for number in range(10)]
    with closing(open_reader(topic)) as first, closing(open_reader(topic)) as second:
        writer.append(sealed(values[:5]))
        assert read(first, 5) == numbered(values[:5])
        writer.append(sealed(values[5:]))
        assert read(second, 10) == numbered(values)
        assert read(first, 5) == numbered(values[5:], 5)


def test_seek_goes_anywhere_up_to_the_end(writer: TopicWriter, reader: TopicReader) -> None:
    values = [b"%d" % number for number in range(10)]
    writer.append(sealed(values))
    for offset in (4, 9, 0):
        reader.seek(offset)
        assert read(reader, 10 - offset) == numbered(values[offset:], offset)
    reader.seek(10)
    assert reader.read(0.3) == []
    writer.append(sealed([b"10"]))
    assert read(reader, 1) == [Record(10, b"10")]


def test_a_place_after_the_end_is_an_error(writer: TopicWriter, reader: TopicReader) -> None:
    """Whoever has read so far has read another topic, or this one lost records, which it may get back on Fluvio."""
    writer.append(sealed([b"0", b"1"]))
    reader.seek(3)
    with pytest.raises(
        TopicLinkError if reader.return_seconds else OffsetGoneError, match="ends at offset 2, before 3"
    ):
        read(reader, 1)


def test_a_new_writer_continues(topic: TopicSettings) -> None:
    for number in range(4):
        with closing(open_writer(topic)) as writer:
            assert writer.last() == (Record(2 * number - 1, b"second") if number else None)
            writer.append(sealed([b"first", b"second"]))
            assert writer.last() == Record(2 * number + 1, b"second")
    with closing(open_reader(topic)) as reader:
        assert read(reader, 8) == numbered([b"first", b"second"] * 4)


def test_a_very_large_record(writer: TopicWriter, reader: TopicReader) -> None:
    value = random.Random(2).randbytes(20 << 20)
    writer.append(sealed([b"before", value, b"after"]))
    found = read(reader, 3, 60)
    assert [record.value for record in found] == [b"before", value, b"after"]
    for record in found[:2]:
        reader.seek(record.offset)
        assert read(reader, 1, 60)[0] == record


def test_errors_name_the_topic(topic: TopicSettings, writer: TopicWriter, reader: TopicReader) -> None:
    reader.seek(9)
    with pytest.raises(TopicError, match=topic.name):
        read(reader, 1)


#: bytes of the records of one append; some take more than one batch, or more than one part of one
sizes = st.lists(st.sampled_from([0, 1, 40, 900, 3000, 9000]), max_size=8)
step = st.one_of(
    st.tuples(st.just("append"), sizes),
    st.tuples(st.just("reopen"), st.none()),
    st.tuples(st.just("seek"), st.floats(0, 1)),
    st.tuples(st.just("read"), st.integers(1, 10)),
)


@settings(max_examples=20, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(step, min_size=3, max_size=12))
def test_any_sequence_of_steps_behaves_like_a_list(
    new_topic: NewTopic, monkeypatch: pytest.MonkeyPatch, steps: list[tuple[str, Any]]
) -> None:
    """With a reader behind, inside and at the end of batches and of records in parts; one that comes anew sees all."""
    monkeypatch.setattr(embedded, "BATCH_BYTES", 2000)
    monkeypatch.setattr(batch, "PART_BYTES", 4000)
    monkeypatch.setattr(fluvio_parts, "PART_BYTES", 2000)
    topic = new_topic()
    stored: list[Record] = []
    place = end = 0
    writer = open_writer(topic)
    reader = open_reader(topic)
    try:
        for action, argument in steps:
            if action == "append":
                records = sealed([random.Random(end + number).randbytes(size) for number, size in enumerate(argument)])
                writer.append(records)
                for record in records:
                    # where a record in parts takes more than one offset, it has the last of them
                    end += 1 if topic.backend == "embedded" else len(fluvio_parts.split(record))
                    stored.append(Record(end - 1, record.value))
            elif action == "reopen":
                writer.close()
                writer = open_writer(topic)
                assert writer.last() == (stored[-1] if stored else None)
            elif action == "seek":
                place = round(argument * end)
                reader.seek(place)
            else:
                left = [record for record in stored if record.offset >= place]
                found = read(reader, min(argument, len(left)))
                assert found == left[: len(found)]
                assert len(found) >= min(argument, len(left))
                place = found[-1].offset + 1 if found else place
            assert reader.next_offset() == end
        with closing(open_reader(topic)) as other:
            assert read(other, len(stored)) == stored
            assert other.first_offset() == (stored[0].offset if stored else 0)
    finally:
        reader.close()
        writer.close()


def test_the_paths_of_settings_may_use_a_tilde(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with closing(open_writer(TopicSettings("t", path="~/topics"))):
        assert (tmp_path / "topics/t.topic").exists()
