"""Native replication is the oracle: whatever it carries, the programs carry, or a limit names it."""
