"""The timers of one task: a queue in order of time, in memory or on a shelf."""
