"""Devices: what they measure and do, the way to them, and the door that they come in by."""
