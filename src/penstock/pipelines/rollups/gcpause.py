"""Python's garbage collector, paused while a batch makes a great many objects without cycles."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["collection_paused"]


@contextmanager
def collection_paused() -> Iterator[None]:
    """Let the collector rest until the block ends.

    Windows and panes hold no cycles: they are gone when nobody refers to them. The collector goes
    through all that are alive, again and again as there come more of them, and finds nothing. That
    was more than half of the time of a batch with many keys.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
