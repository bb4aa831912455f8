"""Copies some tables, or a database, into a follower that has all else: as they were at its own position."""
