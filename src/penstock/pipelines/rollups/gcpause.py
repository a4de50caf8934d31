"""Python's garbage collector, paused while a batch makes a great many objects without cycles."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["collection_paused"]


@contextmanager
def collection_paused() -> Iterator[None]:
    """Pause the collector until the block ends.

    Windows and panes hold no cycles: they are gone when nobody refers to them. As more of them
    come, the collector goes through all live ones again and again, and finds nothing. That took
    more than half of the time of a batch with many keys.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
