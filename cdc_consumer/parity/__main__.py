"""Starts cdc-parity, for python -m cdc_consumer.parity."""

from cdc_consumer.parity.cli import main

raise SystemExit(main())
