"""The audit: proves that a follower equals its leader, or names every row that differs."""
