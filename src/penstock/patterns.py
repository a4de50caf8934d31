"""Patterns over time: this, then that, within a time; so often; or not at all.

``pattern`` begins one; its methods add steps. ``sequence`` begins steps that are repeated together.
"""

from penstock.core.patterns.pattern import pattern
from penstock.core.patterns.steps import sequence

__all__ = ["pattern", "sequence"]
