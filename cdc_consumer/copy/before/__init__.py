"""Looks before a copy begins whether it can come to its end, and asks before it drops anything."""
