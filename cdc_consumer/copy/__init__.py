"""Copies a live leader into an empty follower, and ends where the consumer goes on."""
