"""Proves a copy by the audit, beside a consumer: what the leader has written since must come for rows to be compared.

The consumer is the one that goes on from the copy's moment anyway. Where one runs already, as a service manager may
have started it, that one does the same.
"""

from __future__ import annotations

import dataclasses
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from cdc_consumer.copy.profile import CopyProfile
from cdc_consumer.copy.runners import OnSpark, Runner
from cdc_consumer.parity.cli import Audit, load_audit
from cdc_consumer.parity.options import Options
from cdc_consumer.parity.profile import AuditedFollower, ParityProfile
from cdc_consumer.parity.progress import StatusLine
from cdc_consumer.parity.run_model import Run
from cdc_consumer.parity.servers.pair import Pair, open_pair
from cdc_consumer.profile import Apply, ConsumerProfile
from cdc_consumer.replay import replay
from shared.errors import CdcError, FollowerError, causes
from shared.recovery import Stopping

logger = logging.getLogger(__name__)

#: seconds of one wait for the follower
WAIT_SECONDS = 1.0
#: seconds that the follower's position may stand still, while it is behind, before that is an error
STILL_SECONDS = 60.0


def audited(profile: CopyProfile) -> ParityProfile:
    """Return what the audit of this copy is told."""
    fields = {field.name: getattr(profile.follower, field.name) for field in dataclasses.fields(AuditedFollower)}
    return ParityProfile(
        profile.leader,
        AuditedFollower(**fields),
        profile.filters,
        profile.report,
        profile.limits.paces(),
        profile.topic,
    )


def require_audit(runner: Runner) -> Audit:
    """Return the audit, which runs on the same Spark as the copy where that has one.

    Raises AuditError when Spark or Java is not installed.
    """
    audit = load_audit()
    from cdc_consumer.parity.spark.java import require_java

    require_java()
    return partial(audit, start_spark=runner.lend) if isinstance(runner, OnSpark) else audit


def prove(audit: Audit, profile: CopyProfile, options: Options, name: str, stopping: Stopping) -> tuple[Run, Path]:
    """Run an audit of the follower; return what was found and the folder it was written to. Raises CdcErrors.

    `name` is the one of the profile's file, for the report.
    """
    parity = audited(profile)
    consumer = dataclasses.replace(profile.consumer(), apply=Apply())
    with _consuming(consumer) as failure, ExitStack() as stack:
        pair = open_pair(parity)
        stack.callback(pair.close)
        _wait(pair, failure, stopping)
        return audit(parity, options, name, stopping, stack)


@contextmanager
def _consuming(profile: ConsumerProfile) -> Iterator[Callable[[], CdcError | None]]:
    """Let a consumer run meanwhile; what is yielded returns the error that has ended it."""
    ending = threading.Event()
    failed: list[CdcError] = []

    def consume() -> None:
        try:
            replay(profile, ending.is_set, exit_at_end=False)
        except CdcError as error:
            failed.append(error)
            logger.info("the consumer beside the audit has ended: %s", causes(error))

    thread = threading.Thread(target=consume, daemon=True)
    thread.start()
    try:
        yield lambda: failed[0] if failed else None
    finally:
        ending.set()
        thread.join()


def _wait(pair: Pair, failure: Callable[[], CdcError | None], stopping: Stopping) -> None:
    """Wait until the follower has what the leader has now: only then it is compared, as one that is far behind is not.

    Raises FollowerError when it stands still.
    """
    status, edge = StatusLine(say=lambda text: logger.info("%s", text)), pair.leader.position()
    reached, moved = pair.follower.applied().position, time.monotonic()
    while pair.wait_until_applied(edge, WAIT_SECONDS, stopping) is None and not stopping():
        found = pair.follower.applied().position
        if found != reached:
            reached, moved = found, time.monotonic()
        if time.monotonic() - moved > STILL_SECONDS:
            error = failure()
            raise FollowerError(
                f"the follower stands at {reached} and does not come to {edge} of the leader, where it could be audited"
                + (f": {causes(error)}" if error else "; does cdc-producer run?")
            )
        status.show(
            partial("before the audit the follower comes to {} of the leader; it is at {}".format, edge, reached)
        )
