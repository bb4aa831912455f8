"""Fuzzing: altered bytes for everything that reads bytes from outside; each ends in an exact result or a named error."""
