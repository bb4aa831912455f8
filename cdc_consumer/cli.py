"""Runs the command cdc-consumer."""

from __future__ import annotations

import gc
import logging
from collections.abc import Sequence

from cdc_consumer.decision import read_decision
from cdc_consumer.profile import load_consumer
from cdc_consumer.replay import replay
from shared import program
from shared.errors import EventError, FollowerError

logger = logging.getLogger(__name__)

DESCRIPTION = """Replay the events of a topic, written there by cdc-producer, as SQL on a follower MySQL: transaction by
transaction, in the leader's order, each exactly once."""

EPILOG = """The follower is the consumer's only memory (table position of its database fluvio_cdc): stopped or killed at
any instant, it continues after the last transaction the follower has. A profile:

  [database]                      # the follower
  host = "127.0.0.1"
  port = 3306
  user = "fluvio"
  password_env = "CDC_PASSWORD"
  [filters]
  include_dbs = ["flvDb"]         # or exclude_dbs
  [topic]
  name = "rust-mysql-cdc"
  path = "~/mysql-cdc/topics"     # or backend = "fluvio" and endpoint = "host:port"

The user of the follower needs, and without GTIDs PROCESS as well:

  GRANT SESSION_VARIABLES_ADMIN, REPLICATION_APPLIER, SET_ANY_DEFINER ON *.* TO fluvio@'%';
  GRANT ALL ON flvDb.* TO fluvio@'%';
  GRANT ALL ON fluvio_cdc.* TO fluvio@'%';

SIGINT and SIGTERM finish the transaction in hand when its end is in the topic already, else undo it; a second signal
undoes it at once. A row that is not on the follower (found by its primary key, without one as it was on the leader)
stops the program; nothing of its transaction is committed.

A transaction at which the program stops for good is passed by a decision of yours, which is kept with its reason in the
table left_out of fluvio_cdc, and shown by the audit:

  cdc-consumer PROFILE --skip 42 --reason "orders 7 was deleted here by hand"
  cdc-consumer PROFILE --skip 42 --reason "the other index name is free here" --instead other.sql

leaves out the transaction of sequence 42, which must be the one that follows the follower's position; under GTIDs it is
committed empty under its own. FILE runs in its place, in the same transaction and with whole names (database.table):
INSERT, UPDATE, DELETE and REPLACE, or one other statement."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit status."""
    parser = program.replication_parser(
        "cdc-consumer", DESCRIPTION, "stop once everything is applied that the topic held at the start", EPILOG
    )
    parser.add_argument("--skip", type=int, metavar="SEQUENCE", help="leave out the transaction of this event")
    parser.add_argument("--reason", metavar="TEXT", help="why, for who comes after you; needed with --skip")
    parser.add_argument("--instead", metavar="FILE", help="SQL to run in its place")
    options = parser.parse_args(arguments)
    if options.skip is None and (options.reason or options.instead):
        parser.error("--reason and --instead belong to --skip")

    def action(stop: program.StopRequest) -> None:
        # An event is a great many small objects without a cycle, none of which lives long: looking for garbage among
        # them at the usual pace would cost a third of the time.
        gc.set_threshold(100_000, 20, 100)
        decision = None if options.skip is None else read_decision(options.skip, options.reason, options.instead)
        try:
            replay(load_consumer(options.profile), stop, options.exit_at_end, decision)
        except (EventError, FollowerError):
            logger.info("--help tells how to --skip the transaction of a sequence, if that is what it stops at")
            raise

    return program.run_replication("cdc-consumer", action, verbose=options.verbose)
