"""Reads rows from the leader as text, and writes them into the follower."""
