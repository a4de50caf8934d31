"""Windowed aggregations on Spark: natively where it can, with the pane machine where it cannot."""
