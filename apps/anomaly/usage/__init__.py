"""How devices are used: patterns that Spark finds, and which device follows which of them."""
