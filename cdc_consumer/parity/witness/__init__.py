"""Asks the topic, as a witness, what happened to a row."""
