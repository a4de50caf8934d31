"""Filters that are written in other ways than as documents: as text, and in Python."""
