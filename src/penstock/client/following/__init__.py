"""Live queries as a client follows them: results, and a list that keeps itself current."""
