"""Turns values of JSON columns, MySQL's binary documents, into text, and keeps the types that text alone would lose."""
