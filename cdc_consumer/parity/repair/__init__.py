"""The repair: SQL that makes the follower's rows the leader's, and touches no row that has moved meanwhile."""
