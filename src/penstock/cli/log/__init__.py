"""Verbs that look at the log, the lake and running state: topics, groups, SQL, live queries."""
