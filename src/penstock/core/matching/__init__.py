"""Patterns of texts: read once, matched in linear time, with one meaning in Python and in Java."""
