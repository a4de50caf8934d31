"""Operators: what a declared computation is to every engine, and the machine that does it."""
