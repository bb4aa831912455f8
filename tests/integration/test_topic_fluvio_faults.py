"""What the Fluvio engine does when the cluster, the network or the client misbehaves."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from kit import fluvio_wire as wire
from kit.certificates import Certificate, write_certificate
from kit.fluvio_double import FluvioDouble
from kit.fluvio_wire import Log
from kit.topic import VALUES, numbered, read, sealed

from shared.errors import OffsetGoneError, RecordTooLargeError, TopicError, TopicLinkError, TopicMissingError
from shared.profile import ClusterTls, TopicSettings
from shared.topic import Record, fluvio_parts, fluvio_topic
from shared.topic.fluvio_topic import FluvioReader, FluvioWriter
from shared.topic.fluvio_worker import STREAMS

pytest_plugins = ["fix_fluvio"]

# --- reaching the cluster


def test_nobody_listens(topic: TopicSettings) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    for engine in (FluvioWriter, FluvioReader):
        with pytest.raises(TopicLinkError, match=f"t-1 on Fluvio {address}: .*refused"):
            engine(TopicSettings("t-1", backend="fluvio", endpoint=address))


def test_a_cluster_that_never_answers(double: FluvioDouble, topic: TopicSettings, impatient: None) -> None:
    """The wheel waits for ever, in part with Python's interpreter lock held."""
    double.silent = True
    for engine in (FluvioWriter, FluvioReader):
        started = time.monotonic()
        with pytest.raises(TopicLinkError, match=r"no answer within [2-4] s"):
            engine(topic)
        assert time.monotonic() - started < 6


def test_an_endpoint_that_is_none() -> None:
    with pytest.raises(TopicError, match="invalid socket address") as caught:
        FluvioReader(TopicSettings("t-1", backend="fluvio", endpoint="somewhere"))
    assert not isinstance(caught.value, TopicLinkError)


def test_the_active_profile(
    double: FluvioDouble, writer: FluvioWriter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "config"
    monkeypatch.setenv("FLV_PROFILE_PATH", str(path))
    settings = TopicSettings("t-1", backend="fluvio")
    with pytest.raises(TopicError, match="no active Fluvio profile; set"):
        FluvioReader(settings)
    path.write_text(
        f'version = "2"\ncurrent_profile = "p"\n[profile.p]\ncluster = "c"\n[cluster.c]\n'
        f'endpoint = "{double.endpoint}"\nuse_spu_local_address = false\n[cluster.c.tls]\ntls_policy = "disabled"\n'
    )
    with closing(FluvioReader(settings)) as reader:
        assert reader.next_offset() == 0


def test_the_topic_is_created_to_keep_its_records(double: FluvioDouble) -> None:
    for name, days, seconds in (("t-10", 2.0, 172_800), ("t-1", None, 4_294_967_295), ("t-2", 1e-9, 10)):
        settings = TopicSettings(name, backend="fluvio", endpoint=double.endpoint, retention_days=days)
        FluvioWriter(settings).close()
        FluvioWriter(settings).close()  # exists: left alone
        log = double.logs[name]
        assert (log.retention, log.size) == (seconds, 1 << 50)


def test_a_topic_of_more_partitions(double: FluvioDouble, writer: FluvioWriter, topic: TopicSettings) -> None:
    """Of three partitions the producer would write one, and perhaps another than is read."""
    double.logs["t-1"].partitions = 3
    for engine in (FluvioWriter, FluvioReader):
        with pytest.raises(TopicError, match="it has 3 partitions, and the order of events is only kept within one"):
            engine(topic)


def test_topics_whose_names_contain_each_other(double: FluvioDouble) -> None:
    for name in ("t-1", "t-1-0", "t-1-1", "at-1"):
        FluvioWriter(TopicSettings(name, backend="fluvio", endpoint=double.endpoint)).close()
        FluvioReader(TopicSettings("t-1", backend="fluvio", endpoint=double.endpoint)).close()


def test_a_topic_is_created_with_its_replicas(double: FluvioDouble) -> None:
    FluvioWriter(TopicSettings("t-3", backend="fluvio", endpoint=double.endpoint, replication=3)).close()
    assert double.logs["t-3"].replication == 3


@pytest.fixture
def certificate(tmp_path: Path) -> Certificate:
    # a server that stores is asked for its own name under the cluster's
    return write_certificate(tmp_path, domains=["cluster.test", "*.cluster.test"])


@pytest.fixture
def encrypted(certificate: Certificate) -> Iterator[FluvioDouble]:
    """A cluster that also asks for the client's certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    context.load_verify_locations(certificate.cert)
    context.verify_mode = ssl.CERT_OPTIONAL
    with FluvioDouble(context) as double:
        yield double


@pytest.mark.parametrize("verified", [False, True])
def test_tls(
    encrypted: FluvioDouble, certificate: Certificate, verified: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    cert, key = map(str, certificate)
    if not verified:
        monkeypatch.setenv("SSL_CERT_FILE", cert)  # of the authorities that this machine knows
    tls = ClusterTls("verify-identity", cert, cert, key, "cluster.test") if verified else ClusterTls()
    settings = TopicSettings("t-1", backend="fluvio", endpoint=encrypted.endpoint, tls=tls)
    with closing(FluvioWriter(settings)) as writer, closing(FluvioReader(settings)) as reader:
        writer.append(sealed(VALUES))
        assert read(reader, 4) == numbered(VALUES)


def test_a_cluster_that_is_another(encrypted: FluvioDouble, certificate: Certificate, impatient: None) -> None:
    cert, key = map(str, certificate)
    for tls in (ClusterTls("verify-identity", cert, cert, key, "another.test"), ClusterTls(), None):
        with pytest.raises(TopicError):
            FluvioReader(TopicSettings("t-1", backend="fluvio", endpoint=encrypted.endpoint, tls=tls))


# --- writing


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


# --- records in parts


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


# --- reading


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


def test_a_batch_no_reply_can_hold(double: FluvioDouble, writer: FluvioWriter, reader: FluvioReader) -> None:
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
    monkeypatch.setattr(fluvio_topic, "IDLE_SECONDS", 0.5)
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
