"""Explaining a proven difference."""
