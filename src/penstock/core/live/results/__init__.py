"""What changes in results, and results that are aggregates."""
