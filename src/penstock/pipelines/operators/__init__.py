"""Operators on Spark: joins, patterns, derived streams, by the machines that services run."""
