"""Writes the report of an audit: for machines, for people, and the last lines on the terminal."""
