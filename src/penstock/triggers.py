"""Triggers: when a window gives a pane. Give one to ``.trigger(...)``."""

from penstock.core.rollup.windowing import (
    after_count,
    after_delay,
    all_of,
    any_of,
    every,
    every_record,
    in_order,
    never,
    on_watermark,
    repeat,
    until,
)

__all__ = [
    "after_count",
    "after_delay",
    "all_of",
    "any_of",
    "every",
    "every_record",
    "in_order",
    "never",
    "on_watermark",
    "repeat",
    "until",
]
