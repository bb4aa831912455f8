"""Starts cdc-copy: the installed command, and python -m cdc_consumer.copy."""

from shared.start import start


def main() -> int:
    """Entry point; returns the exit status."""
    return start("cdc_consumer.copy.cli", stopped=0)


if __name__ == "__main__":
    raise SystemExit(main())
