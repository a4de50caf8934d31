"""How often Python looks for garbage in a process that handles records for days."""

import gc

__all__ = ["YOUNG_OBJECTS", "collect_rarely"]

YOUNG_OBJECTS = 20_000
"""How many objects may be new before the collector looks at them.

Python's own 700 are a few records. Records, rows and matches are freed when nobody holds them; only
what refers to itself waits for the collector, so looking rarely costs a few megabytes.
"""
_ROUNDS = 20
"""How many rounds of each generation make one of the next."""


def collect_rarely() -> None:
    """Take what is loaded by now out of the collector's rounds, and make these rare."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS, _ROUNDS, _ROUNDS)
