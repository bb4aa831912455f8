"""Reads the head of an SQL statement: what it is and which databases it writes."""
