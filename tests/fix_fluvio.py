"""A Fluvio double with one topic, and the topic's ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from kit.fluvio_double import FluvioDouble

from shared.profile import TopicSettings
from shared.topic import fluvio_clerk
from shared.topic.fluvio_topic import FluvioReader, FluvioWriter


@pytest.fixture
def double() -> Iterator[FluvioDouble]:
    with FluvioDouble() as running:
        yield running


@pytest.fixture
def topic(double: FluvioDouble) -> TopicSettings:
    return TopicSettings("t-1", backend="fluvio", endpoint=double.endpoint)


@pytest.fixture
def open_writer(topic: TopicSettings) -> Iterator[Callable[[], FluvioWriter]]:
    writers: list[FluvioWriter] = []

    def open_one() -> FluvioWriter:
        writers.append(FluvioWriter(topic))
        return writers[-1]

    yield open_one
    for writer in writers:
        writer.close()


@pytest.fixture
def writer(open_writer: Callable[[], FluvioWriter]) -> FluvioWriter:
    return open_writer()


@pytest.fixture
def reader(writer: FluvioWriter, topic: TopicSettings) -> Iterator[FluvioReader]:
    with closing(FluvioReader(topic)) as opened:
        yield opened


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fluvio_clerk, "ANSWER_SECONDS", 2.0)
