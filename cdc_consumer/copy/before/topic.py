"""Waits for the topic that a copy takes from what was written meanwhile."""

from __future__ import annotations

import logging
from contextlib import ExitStack

from cdc_consumer.copy.moment import LOOK_SECONDS, Ended
from shared.errors import TopicMissingError
from shared.profile import TopicSettings
from shared.recovery import Stopping, sleep
from shared.topic import open_reader
from shared.topic.walk import TopicWalk

logger = logging.getLogger(__name__)


def open_copied_topic(settings: TopicSettings, stopping: Stopping, stack: ExitStack) -> TopicWalk:
    """Wait until there is a topic with a record in it; `stack` closes it. Raises CdcError, Ended."""
    told = False
    while not stopping():
        try:
            walk = TopicWalk(f"topic {settings.name}", open_reader(settings))
            if walk.first() is not None:
                stack.callback(walk.close)
                return walk
            walk.close()
        except TopicMissingError:
            pass
        if not told:
            told = True
            logger.info("waiting for the topic: cdc-producer makes it")
        sleep(LOOK_SECONDS, stopping)
    raise Ended
