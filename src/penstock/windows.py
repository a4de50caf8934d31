"""Windows: which records of a stream belong together, and what a pane holds of them.

Kinds of windows for ``stream.window(...)``, and modes for ``.accumulate(...)``.
"""

from penstock.core.rollup.aggregation import accumulating, discarding, retracting
from penstock.core.rollup.windowing import counted, everything, fixed, sessions, sliding

__all__ = [
    "accumulating",
    "counted",
    "discarding",
    "everything",
    "fixed",
    "retracting",
    "sessions",
    "sliding",
]
