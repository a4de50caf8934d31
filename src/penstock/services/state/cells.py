"""The values of one state of one task, by key: read, written, taken back, expired, restored.

A value of a plain type (a number, a text, a truth, bytes) is held as it is; any other as its JSON,
so that what the user's code does to an object it was given, or has given, changes nothing here.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from penstock.core.graph.state import CallScope, ListState, State, StateSpec
from penstock.core.instants import MICROSECOND, micros
from penstock.services.state.codec import MAX_STATE_BYTES, StateCodec, check_size
from penstock.services.state.committed import ABSENT, Overlay
from penstock.services.state.timing.expiries import Expiries, HeldExpiries, ShelvedExpiries

if TYPE_CHECKING:
    from penstock.services.state.shelf import Shelf

__all__ = ["Cells", "ListCells", "ValueCells"]

_LARGE = MAX_STATE_BYTES // 8
"""What is larger than this is measured as it is written."""
_SIZED = (bytes, str)
_LEAST_COUNT, _MOST_COUNT = -(2**63), 2**63
"""Whole numbers between these need no other check."""


class Cells(Overlay):
    """Bytes to what is held there, and which of them changed since the last commit.

    With a time to live what is held is a pair: the thing itself, and when it expires.
    """

    def __init__(
        self,
        spec: StateSpec,
        *,
        changelog: str,
        clock: Callable[[], datetime],
        shelf: "Shelf | None" = None,
        held: StateSpec | None = None,
    ) -> None:
        super().__init__()
        self.spec = spec
        self.codec = StateCodec(held or spec, changelog=changelog)
        self.prefix = self.codec.prefix
        self.values: Any = {}
        """Places to what is held there: a dictionary, or what stands for one on a disk."""
        self._clock = clock
        self._lifetime = None if spec.ttl is None else spec.ttl // MICROSECOND
        self.expiries: Expiries = HeldExpiries()
        if shelf is not None:
            from penstock.services.state.shelved import ShelvedValues

            prefix = self.codec.prefix
            self.values = ShelvedValues(shelf, prefix=prefix, load=self.load)
            self.expiries = ShelvedExpiries(shelf, prefix=prefix, lifetime=self._lifetime or 0)

    def fetch(self, place: bytes) -> Any:
        """Return what is held, or ABSENT."""
        found = self.values.get(place, ABSENT)
        if self._lifetime is None or found is ABSENT:
            return found
        held, expires = found
        return held if expires > micros(self._clock()) else ABSENT

    def put(self, here: CallScope, place: bytes, held: Any) -> None:
        """Hold something, as part of a call; ValueError where it is too large."""
        size = len(held) if isinstance(held, _SIZED) else 0
        if size + len(place) > _LARGE:
            check_size(f"the state {self.spec.name!r}", len(place) + len(self.codec.dump(held)))
        before = self.values.get(place, ABSENT)
        here.undo.append((self, place, before))
        self.changed.setdefault(place, before)
        self.values[place] = held if self._lifetime is None else self._until_later(place, held)

    def replace(self, here: CallScope, place: bytes, held: bytes, before: Any) -> None:
        """Hold bytes where something was that the caller knows, in a state that never expires."""
        if len(held) + len(place) > _LARGE:
            check_size(f"the state {self.spec.name!r}", len(place) + len(held))
        here.undo.append((self, place, before))
        self.changed.setdefault(place, before)
        self.values[place] = held

    def drop(self, here: CallScope, place: bytes) -> None:
        """Hold nothing any more, as part of a call."""
        if (before := self.values.get(place, ABSENT)) is not ABSENT:
            here.undo.append((self, place, before))
            self.changed.setdefault(place, before)
            del self.values[place]

    def restore(self, place: bytes, before: Any) -> None:
        """Take back a change."""
        if before is ABSENT:
            self.values.pop(place, None)
        else:
            self.values[place] = before

    def changes(self) -> Iterator[tuple[bytes, bytes | None]]:
        """Yield place and value for every place that changed since the last commit."""
        for place in self.changed:
            found = self.values.get(place, ABSENT)
            yield place, None if found is ABSENT else self.dump(found)

    def dump(self, found: Any) -> bytes:
        """Return what is held, with its expiry where it has one, as the changelog holds it."""
        if self._lifetime is None:
            return self.codec.dump(found)
        return b"%d %s" % (found[1], self.codec.dump(found[0]))

    def apply(self, place: bytes, value: bytes | None) -> None:
        """Take in what the changelog holds for a place."""
        if value is None:
            self.values.pop(place, None)
        else:
            self.values[place] = self.admit(place, value)

    def admit(self, place: bytes, value: bytes) -> Any:
        """Return what a value of the changelog is held as, the first time that it is read."""
        found = self.load(place, value)
        if self._lifetime is not None:
            self.expiries.add(place, found[1])
        return found

    def load(self, place: bytes, value: bytes) -> Any:
        """Return what a value of the changelog is held as; ConfigurationError: it does not fit."""
        expires, gap, rest = value.partition(b" ")
        if not (gap and expires.isdigit()):  # as JSON never begins: written without a time to live
            expires, rest = b"", value
        held = self.codec.load(rest, place=place)
        if self._lifetime is None:
            return held
        return held, int(expires) if expires else self._later()

    def held(self) -> Mapping[bytes, Any]:
        """Return places to what is held there now, for state in memory."""
        found: Mapping[bytes, Any] = self.values
        return found

    def under(self, head: bytes) -> Iterable[bytes]:
        """Return the places that hold something now and begin so."""
        places: Iterable[bytes] = self.values.under(head)
        return places

    def shown(self, found: Any, now_at: datetime) -> Any:
        """Return what is held as the user's code would get it; ABSENT: it has expired."""
        if self._lifetime is None:
            return self.codec.give(found)
        held, expires = found
        return self.codec.give(held) if expires > micros(now_at) else ABSENT

    def expires_at(self) -> int | None:
        """Return, in microseconds, when something may expire next."""
        return self.expiries.first()

    def sweep(self, now: int) -> bool:
        """Forget what has expired, unless it was written again; return whether anything had."""
        swept = False
        again: list[tuple[bytes, int]] = []
        for place in self.expiries.due(now):
            found = self.values.get(place, ABSENT)
            if found is ABSENT:
                continue
            if found[1] > now:
                again.append((place, found[1]))
            else:
                self.changed.setdefault(place, found)
                del self.values[place]
                swept = True
        for place, expires in again:
            self.expiries.add(place, expires)
        return swept

    def _until_later(self, place: bytes, held: Any) -> tuple[Any, int]:
        expires = micros(self._clock()) + (self._lifetime or 0)
        self.expiries.add(place, expires)
        return held, expires

    def _later(self) -> int:
        return micros(self._clock()) + (self._lifetime or 0)


class ValueCells(Cells):
    """The cells of a ``State``: a key's value stands under the key."""

    def __init__(self, spec: StateSpec, **options: Any) -> None:
        super().__init__(spec, **options)
        # Chosen once: these run for every record, and most states are a number without an expiry.
        direct = self.codec.plain and spec.ttl is None
        self.read: Callable[..., Any] = self.values.get if direct else self._read
        plain = {int: self._write_int}.get(spec.type, self._write_number)
        if spec.type in _SIZED:
            plain = self._write_sized
        self.write: Callable[[CallScope, Any], None] = plain if direct else self._write
        self._refuses = self.codec.refuses
        self._floats = spec.type is float

    def handle(self, here: CallScope) -> State[Any]:
        """Return what the user's code gets."""
        return State(self, here)

    def places(self, key: bytes) -> tuple[bytes, bool]:
        """Return the place of a key, which has one."""
        return key, False

    def key_of(self, place: bytes) -> bytes:
        """Return the key that a place belongs to."""
        return place

    def gather(self, found: Iterable[tuple[bytes, Any]], now_at: datetime) -> Any:
        """Return the value of a key."""
        for _, held in found:
            return self.shown(held, now_at)
        return ABSENT

    def remove(self, here: CallScope) -> None:
        """Forget the key."""
        self.drop(here, here.key)

    def value_of(self, key: bytes) -> Any:
        """Return the value of a key for a test to look at, None where it has none."""
        return self.read(key, None)

    def _read(self, key: bytes, default: Any = None) -> Any:
        held = self.fetch(key)
        return default if held is ABSENT else self.codec.give(held)

    def _write(self, here: CallScope, value: Any) -> None:
        self.put(here, here.key, self.codec.hold(value))

    def _write_sized(self, here: CallScope, value: Any) -> None:
        if refusal := self._refuses(value):
            raise TypeError(refusal)
        key, values = here.key, self.values
        if len(key) > _LARGE or len(value) > _LARGE:
            self.put(here, key, value)
            return
        before = values.get(key, ABSENT)
        here.undo.append((self, key, before))
        self.changed.setdefault(key, before)
        values[key] = value

    def _write_number(self, here: CallScope, value: Any) -> None:
        if refusal := self._refuses(value):
            raise TypeError(refusal)
        self._keep(here, float(value) if self._floats else value)

    def _write_int(self, here: CallScope, value: Any) -> None:
        # Most states count: their check is made here, without a call.
        if type(value) is not int or not _LEAST_COUNT < value < _MOST_COUNT:
            self._write_number(here, value)
            return
        key, values = here.key, self.values
        if len(key) > _LARGE:
            self.put(here, key, value)
            return
        before = values.get(key, ABSENT)
        here.undo.append((self, key, before))
        self.changed.setdefault(key, before)
        values[key] = value

    def _keep(self, here: CallScope, value: Any) -> None:
        key, values = here.key, self.values
        if len(key) > _LARGE:
            self.put(here, key, value)
            return
        before = values.get(key, ABSENT)
        here.undo.append((self, key, before))
        self.changed.setdefault(key, before)
        values[key] = value


class ListCells(ValueCells):
    """The cells of a ``ListState``: a JSON array under the key, made longer without reading it."""

    def __init__(self, spec: StateSpec, *, changelog: str, **options: Any) -> None:
        whole = StateSpec(spec.name, list[spec.type])  # type: ignore[name-defined]
        super().__init__(spec, changelog=changelog, held=whole, **options)
        self._item = StateCodec(spec, changelog=changelog)

    def handle(self, here: CallScope) -> ListState[Any]:  # type: ignore[override]
        """Return what the user's code gets."""
        return ListState(self, here)

    def append(self, here: CallScope, items: Iterable[Any]) -> None:
        """Add items at the end of the key's list, all or none."""
        encoded = b",".join([self._item.json(item) for item in items])
        if encoded:
            held = self.fetch(here.key)
            begun = b"[" if held is ABSENT else held[:-1] + b","
            self.put(here, here.key, begun + encoded + b"]")
