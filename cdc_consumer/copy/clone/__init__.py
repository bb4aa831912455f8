"""Fills a follower with the leader's own files, by MySQL's CLONE, and does what is left to do behind them."""
