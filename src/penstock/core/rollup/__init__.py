"""Windowed aggregations: declared as values, checked, and made ready for every engine."""
