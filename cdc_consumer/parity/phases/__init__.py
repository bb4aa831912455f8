"""Holds the parts of one run, in order: plan what is compared, find what differs, conclude."""
