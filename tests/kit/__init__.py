"""What several tests use: servers, programs, events, cases and comparisons."""
