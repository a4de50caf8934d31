"""Verbs that look at the log and the lake: topics, groups, dead letters, SQL."""
