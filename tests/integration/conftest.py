"""Fixtures of the integration tests."""

from fix_replay import gtid_stage, stage

__all__ = ["gtid_stage", "stage"]
