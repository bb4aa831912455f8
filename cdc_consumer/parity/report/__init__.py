"""The report of an audit: what a machine reads, what a person reads, and the last lines on the terminal."""
