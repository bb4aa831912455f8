"""Containers, and under local the same servers without them."""
