"""Read-only SQL over streams, tables and the lake."""
