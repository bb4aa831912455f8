"""Starts the copy, for spark-submit cdc_consumer/copy/job.py PROFILE."""

from __future__ import annotations

import sys
from pathlib import Path

# spark-submit puts this file's folder on the path, not the project's
sys.path[0] = str(Path(__file__).resolve().parents[2])

from cdc_consumer.copy.cli import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main(spark=True))
