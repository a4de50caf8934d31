"""Live queries: filters, orders and results that keep themselves current, without I/O."""
