"""Scripts that nobody has thought of: sessions, definitions and changes of rows, the same for the same seed."""
