"""Records in: from a body to the log, each acknowledged, each request once."""
