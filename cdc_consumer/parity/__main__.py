"""Starts cdc-parity: the installed command, and python -m cdc_consumer.parity."""

from shared.start import start


def main() -> int:
    """Entry point; returns the exit status."""
    return start("cdc_consumer.parity.cli", stopped=130)


if __name__ == "__main__":
    raise SystemExit(main())
