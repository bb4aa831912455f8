"""Tells of a copy: how far it is while it runs, what it was when it has ended, and whether the audit proves it."""
