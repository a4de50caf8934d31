"""Recompute a pipeline beside the running one, and replace it."""
