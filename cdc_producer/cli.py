"""Runs the command cdc-producer."""

from __future__ import annotations

from collections.abc import Sequence

from cdc_producer.decision import read_leader_decision
from cdc_producer.produce import Producer
from cdc_producer.profile import load_producer
from shared import program

DESCRIPTION = """Read the binlog of a leader MySQL and publish what the profile's filter includes to a topic, one JSON
event per operation, in the leader's order, each exactly once."""

EPILOG = """The topic is the producer's only memory: stopped or killed at any instant, it continues after the topic's
last record. A profile:

  mysql_resource_name = "mysql-srv1"
  [database]
  host = "127.0.0.1"
  port = 3306
  user = "fluvio"
  password_env = "CDC_PASSWORD"
  start = "earliest"              # of an empty topic: or "copy", "latest", a GTID set, "file:offset"
  [filters]
  include_dbs = ["flvDb"]         # or exclude_dbs
  [topic]
  name = "rust-mysql-cdc"
  path = "~/mysql-cdc/topics"     # or backend = "fluvio" and endpoint = "host:port"

The leader must log rows with full metadata and let the user replicate:

  SET PERSIST binlog_row_metadata = FULL;
  CREATE USER fluvio@'%' IDENTIFIED BY '...';
  GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO fluvio@'%';

A transaction at which the program stops for good is passed by a decision of yours:

  cdc-producer PROFILE --skip binlog.000003:157 --reason "an XA transaction that was rolled back"

leaves out the transaction of this GTID, or the one that holds the binlog event at this position, as the error names it.
A record with the reason stands for it in the topic; each follower undoes what came of it, keeps the reason in the table
left_out of fluvio_cdc, and the audit shows it."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit status."""
    parser = program.replication_parser(
        "cdc-producer", DESCRIPTION,
        "stop once everything is published that the leader had committed at the start", EPILOG,
    )  # fmt: skip
    parser.add_argument("--skip", metavar="GTID|FILE:OFFSET", help="leave out this transaction")
    parser.add_argument("--reason", metavar="TEXT", help="why, for who comes after you; needed with --skip")
    options = parser.parse_args(arguments)
    if options.skip is None and options.reason:
        parser.error("--reason belongs to --skip")

    def action(stop: program.StopRequest) -> None:
        leave_out = None if options.skip is None else read_leader_decision(options.skip, options.reason)
        Producer(load_producer(options.profile), stop, options.exit_at_end, leave_out).run()

    return program.run_replication("cdc-producer", action, verbose=options.verbose)
