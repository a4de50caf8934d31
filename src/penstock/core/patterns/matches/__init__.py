"""The matches of one key: how they begin, go on, end, and discard one another."""
