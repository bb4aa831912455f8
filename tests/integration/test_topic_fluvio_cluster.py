"""How the Fluvio engine reaches a cluster and its topic, encrypted or not, and how it says that it cannot."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from kit.certificates import Certificate, write_certificate
from kit.fluvio_double import FluvioDouble
from kit.topic import VALUES, numbered, read, sealed

from shared.errors import TopicError, TopicLinkError
from shared.profile import ClusterTls, TopicSettings
from shared.topic.fluvio_topic import FluvioReader, FluvioWriter

pytest_plugins = ["fix_fluvio"]


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
        assert time.monotonic() - started < 20


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
