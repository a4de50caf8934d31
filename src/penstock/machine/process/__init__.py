"""Processes that never outlive their owner, and the registry of running commands."""
