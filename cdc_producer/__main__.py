"""Starts cdc-producer, for python -m cdc_producer."""

from cdc_producer.cli import main

raise SystemExit(main())
