"""Holds what starts MySQL: containers, and under local the same servers without them."""
