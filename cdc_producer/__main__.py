"""Starts cdc-producer: the installed command, and python -m cdc_producer."""

from shared.start import start


def main() -> int:
    """Entry point; returns the exit status."""
    return start("cdc_producer.cli", stopped=0)


if __name__ == "__main__":
    raise SystemExit(main())
