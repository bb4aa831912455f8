"""Runs the command cdc-parity, also for spark-submit."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TypeAlias

from cdc_consumer.parity.options import Options
from cdc_consumer.parity.profile import load_parity
from cdc_consumer.parity.report.closing import closing
from cdc_consumer.parity.run_model import Run
from shared import program
from shared.errors import AuditError
from shared.program import StopRequest

NAME = "cdc-parity"
#: makes a whole audit, see `audit`
Audit: TypeAlias = Callable[..., "tuple[Run, Path]"]
#: exit status of an audit that could not run
CANNOT_RUN = 4

DESCRIPTION = """Prove that a follower MySQL equals its leader while both are live, or name every row that differs, with
the evidence, the part of the replication that failed, and the SQL that repairs it. Reads only: no lock, no write on
either server, unless --repair asks for it."""

EPILOG = f"""A profile:

{program.BOTH_SERVERS}  [filters]
  include_dbs = ["flvDb"]         # or exclude_dbs, as in the other profiles
  [topic]                         # tells which rows were written when, while the leader is busy
  name = "rust-mysql-cdc"
  path = "~/mysql-cdc/topics"
  [report]
  path = "~/mysql-cdc/reports"    # each run makes a folder of its own in it
  [limits]                        # profiles/parity_profile.toml has them all
  leader_threads = 40             # pauses while the leader runs more threads
  window = "22:00-06:00"

The user of the leader needs: GRANT SELECT, SHOW VIEW, TRIGGER, EVENT ON flvDb.* and GRANT REPLICATION CLIENT,
SHOW_ROUTINE ON *.*; the one of the follower the same but for REPLICATION CLIENT, and SELECT ON fluvio_cdc.*. With
exclude_dbs both need SHOW DATABASES ON *.*, too.

The consumer should be running: rows that differ are judged when it has caught up with what the leader showed.
On a cluster: spark-submit --master spark://host:7077 cdc_consumer/parity/job.py PROFILE

exit status: 0 every selected table is proven equal, 1 differences are proven, 2 usage or a bad profile,
3 nothing is proven different but something is undecided or skipped, 4 the audit could not run, 130 interrupted:
go on with --resume RUN"""


def parser() -> argparse.ArgumentParser:
    """Describe the arguments of cdc-parity."""
    result = program.parser(NAME, DESCRIPTION, EPILOG)
    result.add_argument(
        "--tables", action="append", default=[], metavar="DB.TABLE", help="only these; * and ? match; may be repeated"
    )
    result.add_argument("--where", default="", metavar="SQL", help="only rows of the tables for which this is true")
    result.add_argument(
        "--since", type=int, metavar="SEQUENCE", help="only rows that events from this sequence on have written"
    )
    result.add_argument("--resume", metavar="RUN", help="go on with a run that was interrupted: its name or folder")
    result.add_argument(
        "--repair", action="store_true", help="make the follower equal, each change rehearsed first, and look again"
    )
    result.add_argument("--no-values", action="store_true", help="write hashes instead of values into the report")
    result.add_argument("--parquet", action="store_true", help="also write the differences as Parquet")
    result.add_argument("--cores", type=int, metavar="N", help="cores of this machine to use; all when absent")
    return result


def load_audit() -> Audit:
    """Import the audit only now: --help and a bad profile need no Spark. Raises AuditError where there is none."""
    try:
        from cdc_consumer.parity.audit import audit
    except ModuleNotFoundError as error:
        if error.name != "pyspark":
            raise
        raise AuditError("the audit runs on Spark; install it with: pip install 'mysql-cdc[parity]'") from None
    return audit


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit status."""
    command = parser()
    given = command.parse_args(arguments)
    if given.repair and given.no_values:
        command.error("--repair needs the values that --no-values leaves out")
    if given.since is not None and given.since < 0:
        command.error("--since takes a sequence, 0 or more")
    if given.cores is not None and given.cores < 1:
        command.error("--cores takes a number, 1 or more")
    options = Options(
        tuple(given.tables), given.where, given.since, given.resume, given.repair, not given.no_values,
        given.parquet, given.cores,
    )  # fmt: skip

    def action() -> int:
        profile = load_parity(given.profile)
        with ExitStack() as stack:
            run, folder = load_audit()(profile, options, Path(given.profile).name, StopRequest(), stack)
            print("\n".join(closing(run, folder)), flush=True)
            return run.exit_status

    return program.run(NAME, action, failed=CANNOT_RUN, bug=CANNOT_RUN)
