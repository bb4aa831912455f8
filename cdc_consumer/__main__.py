"""Starts cdc-consumer, for python -m cdc_consumer."""

from cdc_consumer.cli import main

raise SystemExit(main())
