"""``/v1/sql``: read-only SQL over the tables and states that a gateway shows."""
