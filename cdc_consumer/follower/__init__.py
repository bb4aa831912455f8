"""The follower server: its checks, its lock, its sessions and the rows written to it."""
