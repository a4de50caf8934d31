"""Spark itself: its session, its errors, its types and its SQL."""
