"""Leads from the bytes of a binlog event to the JSON of an operation."""
