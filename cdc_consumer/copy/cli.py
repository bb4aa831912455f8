"""Runs the command cdc-copy, also for spark-submit."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from cdc_consumer.copy.beside.discard import give_up
from cdc_consumer.copy.beside.scope import scope_of
from cdc_consumer.copy.copy import copy
from cdc_consumer.copy.profile import load_copy
from cdc_consumer.copy.report.closing import conclude
from cdc_consumer.copy.report.progress import CopyProgress
from cdc_consumer.copy.report.proof import require_audit
from cdc_consumer.copy.runners import OnSpark, Runner, Threads
from shared import program
from shared.errors import FollowerError

NAME = "cdc-copy"

DESCRIPTION = """Fill an empty follower MySQL from a live leader, exactly, and end where cdc-consumer goes on. Tables
with a key are read without a lock; killed at any instant, the same command goes on where it was."""

EPILOG = f"""cdc-producer must run (in its profile: start = "copy"); cdc-consumer starts when the copy has ended, not
before. A profile:

{program.BOTH_SERVERS}  [filters]
  include_dbs = ["flvDb"]         # as in the consumer's profile
  [topic]
  name = "rust-mysql-cdc"
  path = "~/mysql-cdc/topics"
  [limits]                        # profiles/copy_profile.toml has them all
  connections = 2

The user of the leader needs: GRANT SELECT, SHOW VIEW, TRIGGER, EVENT, LOCK TABLES ON flvDb.* and GRANT REPLICATION
CLIENT, REPLICATION SLAVE, SHOW_ROUTINE ON *.*; the one of the follower what the consumer's needs, and with GTIDs GRANT
SYSTEM_VARIABLES_ADMIN ON *.*. With local_infile = ON the follower takes rows faster.

With method = "clone" in [copy] the follower becomes a clone of all the leader has, accounts and grants too. Both need
INSTALL PLUGIN clone SONAME 'mysql_clone.so', the leader's user GRANT BACKUP_ADMIN ON *.*, the follower's GRANT
CLONE_ADMIN, SYSTEM_VARIABLES_ADMIN ON *.*; and the leader needs the follower's user too, with the consumer's grants.

--tables copies some tables anew into a follower that runs: stop cdc-consumer, run this, and start it again. They are
then as they were at the follower's own position; a table that a statement has altered behind it is refused.

--add DATABASE brings one more database to a pair that runs, in this order: name it in include_dbs of cdc-producer's
profile and restart that; let cdc-consumer run as it is for a dozen seconds, and stop it; run this, with the database
in its [filters] too; name it in the consumer's profile, and start it.

On a cluster: spark-submit --master spark://host:7077 cdc_consumer/copy/job.py PROFILE

exit status: 0 done, 1 a named error (one line on standard error) or asked to stop before the copy is whole, 2 usage or
a bad profile, 3 a bug in this program (please report the traceback), 130 asked to stop once more"""


def main(arguments: Sequence[str] | None = None, *, spark: bool = False) -> int:
    """Run the program; returns the exit status. With `spark` its tasks are Spark's."""
    parser = program.parser(NAME, DESCRIPTION, EPILOG)
    parser.add_argument(
        "--replace", action="store_true", help="drop what the follower has, and copy anew; asks on a terminal"
    )
    parser.add_argument(
        "--tables",
        action="append",
        default=[],
        metavar="DB.T,...",
        help="copy only these, into a follower with all else",
    )
    parser.add_argument("--add", default="", metavar="DATABASE", help="copy this into a follower with all else")
    parser.add_argument("--verbose", action="store_true", help="log every step to standard error")
    parser.add_argument(
        "--give-up", action="store_true", help="forget a copy with --tables or --add that has not ended"
    )
    options = parser.parse_args(arguments)
    if sum(map(bool, (options.tables, options.add, options.give_up))) > 1:
        parser.error("--tables, --add and --give-up are three commands")

    def action(stop: program.StopRequest) -> None:
        profile = load_copy(options.profile)
        if options.give_up:
            give_up(profile, stop)
            return
        with ExitStack() as stack:
            runner: Runner = Threads()
            if spark:
                folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="mysql-cdc-copy-"))
                runner = OnSpark(stack, Path(folder) / "spark.log")
            audit = require_audit(runner) if profile.copy.audit else None
            progress = CopyProgress()
            scope = scope_of(options.tables, options.add)
            moment = copy(profile, runner, stop, progress, scope, replace=options.replace)
            if moment is None:
                raise FollowerError(
                    "asked to stop, and the copy is not whole; run it again, which goes on where it was"
                )
            conclude(profile, Path(options.profile).name, moment, progress, audit, scope.patterns, stop)

    return program.run_replication(NAME, action, verbose=options.verbose, interrupted=program.INTERRUPTED)
