"""What a moment of the pane machine came to, in numbers: panes by kind, records for the ledger."""

from collections.abc import Mapping

from penstock.core.panes.bucket import BucketOutput

__all__ = ["AHEAD", "LATE", "PANE_KINDS", "pane_counts"]

PANE_KINDS = ("early", "on_time", "late", "withdrawn")
"""Panes by their timing; and results that a later pane took back."""

LATE, AHEAD = "late_records", "ahead_records"
"""Entries of the late ledger: what no window took, and what was too far ahead of the clock."""


def pane_counts(given: BucketOutput) -> Mapping[str, int]:
    """Return how many of each there are."""
    counts = dict.fromkeys(PANE_KINDS, 0)
    for _, pane in given.panes:
        counts[pane.timing] += 1
        counts["withdrawn"] += len(pane.withdraws)
    return counts | {LATE: len(given.late), AHEAD: len(given.ahead)}
