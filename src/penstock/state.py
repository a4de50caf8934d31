"""State that is more than one value: lists and maps of a key, and what a service does as it opens.

``State`` and ``ttl`` are in ``penstock`` itself. Ask for these by annotation.
"""

from penstock.core.graph.state import ListState, MapState, Opening

__all__ = ["ListState", "MapState", "Opening"]
