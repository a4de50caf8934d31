"""The maps of one state of one task, entry by entry."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import msgspec

from penstock.core.graph.state import CallScope, MapState, StateSpec
from penstock.errors import ConfigurationError
from penstock.services.state.cells import Cells, ListCells, ValueCells
from penstock.services.state.codec import RENAME_HINT, StateCodec
from penstock.services.state.committed import ABSENT

__all__ = ["MapCells", "make_cells"]

_LENGTH_BYTES = 4


class MapCells(Cells):
    """The cells of a ``MapState``: each entry under the length of the key, the key and its name."""

    def __init__(self, spec: StateSpec, *, changelog: str, **options: Any) -> None:
        super().__init__(spec, changelog=changelog, **options)
        if isinstance(self.values, dict):
            self.values = _Indexed()
        self._name = StateCodec(StateSpec(spec.name, spec.key), changelog=changelog).namer
        self._name_decoder = msgspec.json.Decoder(spec.key)

    def handle(self, here: CallScope) -> MapState[Any, Any]:
        """Return what the user's code gets."""
        return MapState(self, here)

    def places(self, key: bytes) -> tuple[bytes, bool]:
        """Return what the places of a key's entries begin with."""
        return _head(key), True

    def key_of(self, place: bytes) -> bytes:
        """Return the key that an entry belongs to."""
        return _head_of(place)[_LENGTH_BYTES:]

    def gather(self, found: Iterable[tuple[bytes, Any]], now_at: datetime) -> Any:
        """Return the map of a key; ABSENT: it has no entries."""
        entries = {}
        for place, held in found:
            if (value := self.shown(held, now_at)) is not ABSENT:
                name = place[len(_head_of(place)) :]
                entries[self._name_decoder.decode(name)] = value
        return entries or ABSENT

    def read_entry(self, here: CallScope, name: Any, default: Any) -> Any:
        """Return an entry of the key's map, or the default."""
        held = self.fetch(_head(here.key) + self._name(name))
        return default if held is ABSENT else self.codec.give(held)

    def write_entry(self, here: CallScope, name: Any, value: Any) -> None:
        """Set an entry; TypeError for what could not be restored."""
        self.put(here, _head(here.key) + self._name(name), self.codec.hold(value))

    def remove_entry(self, here: CallScope, name: Any) -> None:
        """Forget an entry."""
        self.drop(here, _head(here.key) + self._name(name))

    def entries(self, key: bytes) -> dict[Any, Any]:
        """Return a key's map, in the order of the names as JSON."""
        head = _head(key)
        found = {}
        for place in sorted(self.values.under(head)):
            if (held := self.fetch(place)) is not ABSENT:
                found[self._name_decoder.decode(place[len(head) :])] = self.codec.give(held)
        return found

    def admit(self, place: bytes, value: bytes) -> Any:
        """Return what a value of the changelog is held as; its name is read as well."""
        head = _head_of(place)
        try:
            self._name_decoder.decode(place[len(head) :])
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise ConfigurationError(
                f"the state {self.spec.name!r} cannot be restored: its changelog has {place!r}, "
                "which is no entry of this map",
                code="state.unreadable",
                detail=str(error),
                hint=RENAME_HINT,
            ) from error
        return super().admit(place, value)

    def value_of(self, key: bytes) -> Any:
        """Return the map of a key for a test to look at, None where it has none."""
        return self.entries(key) or None


class _Indexed(dict[bytes, Any]):
    """Entries of maps, found by the key they belong to as well."""

    def __init__(self) -> None:
        super().__init__()
        self._by_head: dict[bytes, set[bytes]] = {}

    def under(self, head: bytes) -> Iterable[bytes]:
        """Return the places of one key's entries."""
        return self._by_head.get(head, ())

    def __setitem__(self, place: bytes, held: Any) -> None:
        if place not in self:
            self._by_head.setdefault(_head_of(place), set()).add(place)
        super().__setitem__(place, held)

    def __delitem__(self, place: bytes) -> None:
        super().__delitem__(place)
        head = _head_of(place)
        places = self._by_head[head]
        places.discard(place)
        if not places:
            del self._by_head[head]

    def pop(self, place: bytes, default: Any = None) -> Any:
        """Take an entry out."""
        if place not in self:
            return default
        held = self[place]
        del self[place]
        return held


def _head(key: bytes) -> bytes:
    return len(key).to_bytes(_LENGTH_BYTES) + key


def _head_of(place: bytes) -> bytes:
    return place[: _LENGTH_BYTES + int.from_bytes(place[:_LENGTH_BYTES])]


_KINDS: dict[str, type[ValueCells] | type[MapCells]] = {
    "value": ValueCells,
    "list": ListCells,
    "map": MapCells,
}


def make_cells(spec: StateSpec, **options: Any) -> ValueCells | MapCells:
    """Return the cells of a state, by its kind; the options are those of :class:`Cells`."""
    return _KINDS[spec.kind](spec, **options)
