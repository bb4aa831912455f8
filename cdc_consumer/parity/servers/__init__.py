"""Connections to the leader and the follower, and how far each of them is."""
