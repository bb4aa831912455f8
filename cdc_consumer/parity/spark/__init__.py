"""Holds all that knows Spark."""
