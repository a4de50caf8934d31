"""What operators keep for each key in a store of bytes: rows in time, rows of a table, bags."""
