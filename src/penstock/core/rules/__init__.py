"""Verifies an application before anything runs: every problem, with its place and a way out."""
