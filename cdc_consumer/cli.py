"""Runs the command cdc-consumer."""

from __future__ import annotations

import gc
from collections.abc import Sequence

from cdc_consumer.profile import load_consumer
from cdc_consumer.replay import replay
from shared import program

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

The user of the follower needs (without GTIDs PROCESS instead of REPLICATION_APPLIER):

  GRANT SESSION_VARIABLES_ADMIN, REPLICATION_APPLIER, SET_ANY_DEFINER ON *.* TO fluvio@'%';
  GRANT ALL ON flvDb.* TO fluvio@'%';
  GRANT ALL ON fluvio_cdc.* TO fluvio@'%';

SIGINT and SIGTERM finish the transaction in hand when its end is in the topic already, else undo it; a second signal
undoes it at once. A row that is not on the follower as it was on the leader stops the program; nothing of its
transaction is committed."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit status."""
    parser = program.replication_parser(
        "cdc-consumer", DESCRIPTION, "stop once everything is applied that the topic held at the start", EPILOG
    )
    options = parser.parse_args(arguments)

    def action(stop: program.StopRequest) -> None:
        # An event is a great many small objects without a cycle, none of which lives long: looking for garbage among
        # them at the usual pace would cost a third of the time.
        gc.set_threshold(100_000, 20, 100)
        replay(load_consumer(options.profile), stop, options.exit_at_end)

    return program.run_replication("cdc-consumer", action, verbose=options.verbose)
