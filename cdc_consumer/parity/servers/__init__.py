"""Connects to the leader and the follower, and asks how far each of them is."""
