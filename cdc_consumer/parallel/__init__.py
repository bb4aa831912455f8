"""Applies transactions side by side on several sessions of the follower, as far as the leader's clock allows."""
