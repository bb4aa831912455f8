"""Compares the rows of a table, range by range."""
