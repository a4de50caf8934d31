"""HTTP itself: who calls, what is refused and how, limits on connections, bodies and heads."""
