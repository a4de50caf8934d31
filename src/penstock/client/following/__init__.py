"""One live query as a client follows it: its result, and a list that keeps itself current."""
