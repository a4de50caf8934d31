"""Verbs that run parts: dev, run, replay, rebuild, reset, console."""
