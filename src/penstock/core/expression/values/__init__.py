"""How Python computes what Spark computes: numbers, texts, dates and instants."""
