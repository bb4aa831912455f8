"""Runs real MySQL servers on this machine, without containers, and the demo between two of them."""
