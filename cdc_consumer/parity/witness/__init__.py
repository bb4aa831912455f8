"""The topic as a witness of what happened to a row."""
