"""Writes values, predicates, sessions and positions as SQL: all that the audit takes from the consumer."""
