"""Makes a whole audit: plans what is compared, finds what differs, concludes."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from datetime import datetime, timezone
from pathlib import Path

from cdc_consumer.parity.folders import choose_folder, discard_unused, private
from cdc_consumer.parity.options import Options
from cdc_consumer.parity.phases.conclude import conclude
from cdc_consumer.parity.phases.find import find
from cdc_consumer.parity.phases.plan import make_plan
from cdc_consumer.parity.phases.tools import Tools
from cdc_consumer.parity.profile import ParityProfile
from cdc_consumer.parity.progress import Progress
from cdc_consumer.parity.rows.plan import SIZES, Sizes
from cdc_consumer.parity.run_model import Run
from cdc_consumer.parity.servers.identity import refuse_one_server
from cdc_consumer.parity.servers.pair import open_pair
from cdc_consumer.parity.spark.context import Spark
from cdc_consumer.parity.spark.scan import Cluster
from cdc_consumer.parity.state import State
from cdc_consumer.parity.witness.history import History
from shared.profile_table import expand


def audit(
    profile: ParityProfile, options: Options, name: str, stopped: Callable[[], bool], stack: ExitStack,
    start_spark: Callable[[int, Path], Cluster] = Spark, sizes: Sizes = SIZES,
) -> tuple[Run, Path]:  # fmt: skip
    """Make a whole audit of a follower; return what was found and the folder it was written to.

    `name` is the one of the profile's file, for the report; `stack` ends what was begun, Java among it, which takes its
    time. Raises CdcErrors.
    """
    stack.enter_context(private())
    pair = open_pair(profile)
    # what makes the audit's answer worthless is refused before anything is begun
    refuse_one_server(pair.leader.rows, pair.follower.rows)
    pair.follower.applied()  # refuses a follower without a position
    history = None if profile.topic is None else stack.enter_context(History(profile.topic, {}))
    if history is not None:
        history.require_leader(pair.leader.rows)
    progress, started = Progress(pair), datetime.now(timezone.utc)
    cores = options.cores or os.cpu_count() or 1
    beside = stack.enter_context(ThreadPoolExecutor(1))
    folder, resumed = choose_folder(expand(profile.report.path, "report.path"), options.resume, started)
    stack.callback(discard_unused, folder)
    # Java takes seconds to start; the plan is made meanwhile
    spark = beside.submit(start_spark, cores, folder / "spark.log")
    stack.callback(_stop, spark)
    tools = Tools(profile, name, started, options, sizes, cores, folder, pair, history, progress, stopped)
    plan = make_plan(tools)
    state = State(folder, plan.digest(tools), started.isoformat(), resumed=resumed)
    stack.callback(state.close)
    plan = find(plan, state, tools, spark.result)
    return conclude(plan, state, tools, spark.result()), folder


def _stop(spark: Future[Cluster]) -> None:
    """End the session, also one that is still starting; that it could not start was said already."""
    if spark.exception() is None:
        spark.result().stop()
