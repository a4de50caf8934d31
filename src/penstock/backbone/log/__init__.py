"""Reads and writes the log: consumers, producers, transactions, positions and groups."""
