"""Patterns over time: what is declared, its plan, and the pure machine that finds matches."""
