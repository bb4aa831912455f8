"""Cuts and makes the binlog events that the follower's BINLOG statement takes, and proves that they fit."""
