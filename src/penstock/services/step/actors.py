"""The actors of one task: an object for each key, in memory for as long as it is in use.

The fields of an actor are a state like any other, written after each call that changed them. So an
object in memory is a copy that may be let go at any time: one that is idle **rests**, and leaves
memory when it has rested for as long as it was allowed to be idle. A call that fails takes its
object with it: the next one is made from the state, which the failed call did not change.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from operator import attrgetter
from typing import Any

from penstock.core.graph.actor import OWN_STATE, ActorClass, read_actor
from penstock.core.graph.parts import Actor
from penstock.core.graph.questions import Unanswered, unanswered
from penstock.core.graph.signature import Signature, is_async
from penstock.core.graph.state import CallScope
from penstock.core.instants import MICROSECOND, micros
from penstock.services.state.cells import ValueCells
from penstock.services.state.committed import ABSENT
from penstock.services.state.states import States
from penstock.services.step.calls import Calls, wanted

__all__ = ["MOST_AWAKE", "Actors"]

MOST_AWAKE = 100_000
"""More actors of a task than this are never awake at a time; as many may be resting."""

Take = Callable[[Any, Any, Any], Any]
"""Calls a method of an actor with a message; the third argument is a Context, or None."""


class Actors:
    """Makes, keeps and lets go of the objects of one task; calls them, and keeps their fields."""

    def __init__(self, part: Actor, *, clock: Callable[[], datetime]) -> None:
        self._class: ActorClass = read_actor(part.function)
        self._make = part.function
        self._async = is_async(part.function)
        self._clock = clock
        self._idle = max(1, part.idle_after // MICROSECOND)
        self._awake: dict[bytes, Any] = {}
        self._resting: dict[bytes, Any] = {}
        self._rests_at: int | None = None
        self._started = self._waked = self._passivated = 0

    def facts(self) -> dict[str, int]:
        """Return how many are in memory, and how many were started, waked and passivated."""
        return {
            "actors in memory": len(self._awake) + len(self._resting),
            "actors started": self._started,
            "actors waked": self._waked,
            "actors passivated": self._passivated,
        }

    @property
    def rests_at(self) -> int | None:
        """Return when :meth:`rest` has something to do, in microseconds; None: nobody is awake."""
        return self._rests_at

    def rest(self, now: int) -> None:
        """Let the actors go that have rested for long enough, and those rest that are awake."""
        if self._rests_at is not None and self._rests_at <= now:
            self._turn(now)

    def restore(self, key: bytes, _before: Any) -> None:
        """Let an actor go whose call is taken back: its state is what it was before."""
        self._awake.pop(key, None)
        self._resting.pop(key, None)

    def bind(self, states: States, here: CallScope) -> Calls:
        """Return what to call, with states and timers that point to ``here``."""
        cells = states.named(OWN_STATE)
        if not isinstance(cells, ValueCells):
            raise TypeError(f"{self._make!r} has no state of its own")
        given, timers = states.handles(here), states.timers_handle(here)
        takes: dict[Any, Take] = {}
        for each in self._class.receivers:
            take = _taking(getattr(self._make, each.name), each.signature, given, timers)
            takes |= dict.fromkeys(each.signature.takes, take)
        if silent := {unanswered(kind): take for kind, take in takes.items() if unanswered(kind)}:
            takes[Unanswered] = _silently(silent)
        fired = self._class.definition.on_timer
        ring = None if fired is None else _taking(self._make.on_timer, fired, given, timers)
        call = self._calling(cells, here)

        def receive(message: Any, context: Any = None) -> Any:
            return call(takes.get(type(message)) or takes[Any], message, context)

        return Calls(
            process=receive,
            on_timer=None if ring is None else lambda timer: call(ring, timer, None),
        )

    def _calling(self, cells: ValueCells, here: CallScope) -> Callable[[Take, Any, Any], Any]:
        """Return what calls the actor of the key that ``here`` points to, and keeps its fields."""
        begin, keep = self._beginning(cells, here), self._keeping(cells, here)

        def call(take: Take, message: Any, context: Any) -> Any:
            actor = begin()
            given = take(actor, message, context)
            if given is not None and isinstance(given, Iterator):
                given = list(given)  # a generator goes on in the actor
            keep(actor)
            return given

        async def call_async(take: Take, message: Any, context: Any) -> Any:
            actor = begin()
            given = take(actor, message, context)
            if inspect.isasyncgen(given):
                given = [each async for each in given]
            elif inspect.isawaitable(given):
                given = await given
            if isinstance(given, Iterator):
                given = list(given)
            keep(actor)
            return given

        return call_async if self._async else call

    def _beginning(self, cells: ValueCells, here: CallScope) -> Callable[[], Any]:
        """Return what gives the actor whose call begins."""
        awake, fetch = self._awake, self._fetch

        def begin() -> Any:
            key = here.key
            here.undo.append((self, key, None))
            actor = awake.get(key)
            return fetch(cells, key) if actor is None else actor

        return begin

    def _keeping(self, cells: ValueCells, here: CallScope) -> Callable[[Any], None]:
        """Return what keeps the fields of the actor whose call is over."""
        pack, hold, values = self._packer(), cells.codec.hold, cells.values
        first = hold(self._class.fields())

        def keep(actor: Any) -> None:
            key = here.key
            held, before = hold(pack(actor)), values.get(key, ABSENT)
            if held == before:
                return
            if held != first:
                cells.replace(here, key, held, before)
            elif before is not ABSENT:  # as it was when it began: there is nothing to remember
                cells.drop(here, here.key)

        return keep

    def _packer(self) -> Callable[[Any], Any]:
        """Return what makes of an actor the struct of its fields."""
        fields, names = self._class.fields, self._class.names
        if len(names) == 0:
            return lambda _actor: fields()
        read: Callable[[Any], Any] = attrgetter(*names)
        if len(names) == 1:
            return lambda actor: fields(read(actor))
        return lambda actor: fields(*read(actor))

    def _fetch(self, cells: ValueCells, key: bytes) -> Any:
        """Return an actor that is not awake: it was resting, is in the state, or is new."""
        actor = self._resting.pop(key, None)
        if actor is None:
            held = cells.fetch(key)
            actor = self._make()
            fields = self._class.fields() if held is ABSENT else cells.codec.give(held)
            for name in self._class.names:
                setattr(actor, name, getattr(fields, name))
            if held is ABSENT:
                self._started += 1
            else:
                self._waked += 1
        if self._rests_at is None or len(self._awake) >= MOST_AWAKE:
            self._turn(micros(self._clock()))
            self._rests_at = micros(self._clock()) + self._idle
        self._awake[key] = actor
        return actor

    def _turn(self, now: int) -> None:
        """Let the resting go, and let the awake rest."""
        self._passivated += len(self._resting)
        self._resting = dict(self._awake)
        self._awake.clear()  # in place: calls look here
        self._rests_at = now + self._idle if self._resting else None


def _silently(takes: Mapping[Any, Take]) -> Take:
    """Return what takes the news that a question has no answer, by the type of the question."""

    def take(actor: Any, message: Unanswered[Any], context: Any) -> Any:
        return (takes.get(type(message.question)) or takes[Any])(actor, message, context)

    return take


def _taking(
    function: Callable[..., Any],
    signature: Signature,
    given: Mapping[str, Any],
    timers: Any,
) -> Take:
    """Return a method of an actor with all that it asks for, but the message and a Context."""
    named = wanted(signature, given, timers)
    if signature.context:
        name = signature.context
        return lambda actor, message, context: function(actor, message, **{name: context}, **named)
    if not named:
        return lambda actor, message, _context: function(actor, message)
    parameters = list(inspect.signature(function).parameters.values())[2:]
    if {each.name for each in parameters} != set(named) or any(
        each.kind is not inspect.Parameter.POSITIONAL_OR_KEYWORD for each in parameters
    ):
        return lambda actor, message, _context: function(actor, message, **named)
    ordered = [named[each.name] for each in parameters]  # by position: a fifth of the cost of names
    return lambda actor, message, _context: function(actor, message, *ordered)
