"""Drives that are about to fail, from the values they report of themselves each day."""
