"""The values of one state on a shelf, behind a cache: what a dictionary is for state in memory."""

from collections.abc import Callable, Iterable
from typing import Any

from penstock.services.state.shelf import Shelf

__all__ = ["CACHED_VALUES", "ShelvedValues"]

CACHED_VALUES = 50_000
"""So many values of a state stay in memory from one commit to the next."""

_ABSENT: Any = object()


class ShelvedValues:
    """Places to what is held there. What was written since the last commit is in memory only.

    The shelf is written by whoever commits; :meth:`trim` then bounds the cache.
    """

    def __init__(self, shelf: Shelf, *, prefix: bytes, load: Callable[[bytes, bytes], Any]) -> None:
        self._shelf = shelf
        self._prefix = prefix
        self._load = load
        self._cache: dict[bytes, Any] = {}
        self._unsaved: set[bytes] = set()

    def get(self, place: bytes, default: Any = None) -> Any:
        """Return what is held there, or the default."""
        found = self._cache.get(place, self)
        if found is self:
            value = self._shelf.get(self._prefix + place)
            found = _ABSENT if value is None else self._load(place, value)
            self._cache[place] = found
        return default if found is _ABSENT else found

    def __setitem__(self, place: bytes, held: Any) -> None:
        self._cache[place] = held
        self._unsaved.add(place)

    def pop(self, place: bytes, default: Any = None) -> Any:
        """Hold nothing any more; return what was held."""
        found = self.get(place, _ABSENT)
        self[place] = _ABSENT
        return default if found is _ABSENT else found

    def __delitem__(self, place: bytes) -> None:
        self[place] = _ABSENT

    def __len__(self) -> int:
        """Return about how many values there are, those of all states of the shelf."""
        return len(self._shelf)

    def under(self, head: bytes) -> Iterable[bytes]:
        """Return the places that begin so."""
        cut = len(self._prefix)
        places = {key[cut:] for key, _ in self._shelf.scan(self._prefix + head)}
        places.update(place for place in self._unsaved if place.startswith(head))
        return {place for place in places if self.get(place, _ABSENT) is not _ABSENT}

    def trim(self) -> None:
        """Hear that everything is saved, and keep the cache bounded."""
        self._unsaved.clear()
        if len(self._cache) > CACHED_VALUES:
            self._cache.clear()
