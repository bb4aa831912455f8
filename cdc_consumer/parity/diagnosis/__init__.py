"""Explains a proven difference."""
