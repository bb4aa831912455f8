"""Starts cdc-consumer: the installed command, and python -m cdc_consumer."""

from shared.start import start


def main() -> int:
    """Entry point; returns the exit status."""
    return start("cdc_consumer.cli", stopped=0)


if __name__ == "__main__":
    raise SystemExit(main())
