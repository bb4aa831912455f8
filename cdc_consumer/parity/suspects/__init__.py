"""Decides whether a row that looked different is proven different."""
