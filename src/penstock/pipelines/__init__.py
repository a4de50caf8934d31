"""Pipelines on Spark: the only importer of PySpark, and only when something runs."""
