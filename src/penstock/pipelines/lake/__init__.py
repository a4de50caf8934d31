"""Delta tables: where they are, how they are made, who wrote them, and their upkeep."""
