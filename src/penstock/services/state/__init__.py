"""The state of one task: values, timers, positions; in memory or on disk, and on its changelog."""
