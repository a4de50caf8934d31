"""Processes that never outlive their owner, and the registry of those that run."""
