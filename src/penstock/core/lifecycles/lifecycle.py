"""A life cycle as users declare it, method by method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from penstock.core.lifecycles.declared import DeclaredLifeCycle, Entering, Move
from penstock.core.lifecycles.plan import LifeCyclePlan, read_life_cycle
from penstock.core.options import span_of
from penstock.core.place import caller
from penstock.errors import Problem

__all__ = ["LifeCycle", "lifecycle"]

_ARROW, _OR = "->", "|"


@dataclass(frozen=True, slots=True, kw_only=True)
class LifeCycle(DeclaredLifeCycle):
    """The states that a key goes through; ``lifecycle`` makes it.

    Give it to ``app.stream``, which then has a record for each change and for each record that was
    illegal, or to ``app.table``, which then has the state of each key. Every method returns a new
    life cycle and starts nothing. Mistakes are reported by ``penstock check``.

    Examples:
        >>> from penstock.lifecycles import lifecycle
        >>> boiler = (
        ...     lifecycle("cold", "hot", "off")
        ...     .on(readings, "cold -> hot", where="celsius > 80")
        ...     .on(readings, "hot -> cold", where="celsius < 40")
        ...     .after("1h", "hot -> off")
        ...     .rests("cold", "off")
        ... )
        >>> changes = app.stream("boiler_changes", boiler, on="services")
    """

    kind: str = field(default="life cycle", init=False)

    def on(self, stream: Any, move: str, *, where: str = "") -> LifeCycle:
        """Let a record of a stream move its key: ``"cold -> hot"``, or ``"cold | warm -> hot"``.

        Of several moves that a record allows, the first that was declared is made. ``where`` is an
        expression over the record.

        Examples:
            >>> from penstock.lifecycles import lifecycle
            >>> lifecycle("cold", "hot").on(readings, "cold -> hot", where="celsius > 80").states
            ('cold', 'hot')
        """
        sources, target = _ways(move)
        made = Move(sources, target, self._number(stream), where, place=caller())
        return self._with(stream, made)

    def stays(self, stream: Any, *states: str, where: str = "") -> LifeCycle:
        """Let records of a stream change nothing in these states, so that they are legal there."""
        return self._with(stream, Move(states, None, self._number(stream), where, place=caller()))

    def after(self, span: str | timedelta, move: str) -> LifeCycle:
        """Let a key move when it has been in a state for a span of event time.

        A state has one time-out at most. It comes before any record of the key whose event time is
        past it.
        """
        sources, target = _ways(move)
        made = Move(sources, target, after=span_of(span), place=caller())
        return replace(self, moves=(*self.moves, made))

    def rests(self, *states: str) -> LifeCycle:
        """Say of states that they may last for ever; every other one needs a time-out."""
        return replace(self, resting=(*self.resting, *states))

    def entering(self, state: str, /, **fields: str) -> LifeCycle:
        """Record more with the change when a state begins: names and expressions.

        The expressions are over the change itself: the key, ``state``, ``before``, ``cause``,
        ``at``. The fields are null in other changes, so that streams can be derived from them:
        ``changes.where("command is not null")``.
        """
        entry = Entering(state, tuple(fields.items()), caller())
        return replace(self, entries=(*self.entries, entry))

    def reading(self, data: Sequence[Any]) -> LifeCycle:
        """Return the same life cycle over these streams, one for each that it reads."""
        return replace(self, reads=tuple(data))

    def plan(self) -> LifeCyclePlan | list[Problem]:
        """Return it ready to run, or everything that is wrong with it."""
        return read_life_cycle(self)

    def _number(self, stream: Any) -> int:
        return self.reads.index(stream) if stream in self.reads else len(self.reads)

    def _with(self, stream: Any, move: Move) -> LifeCycle:
        reads = self.reads if stream in self.reads else (*self.reads, stream)
        return replace(self, reads=reads, moves=(*self.moves, move))


def lifecycle(*states: str) -> LifeCycle:
    """Declare a life cycle: the states that each key goes through, the first one first.

    What a record would move in a state that has no such move is illegal: a change with ``legal``
    false is given, and the key stays where it is. ``penstock check`` reports states that nothing
    leads to, and states that could last for ever though nobody said that they may.

    Examples:
        >>> from penstock.lifecycles import lifecycle
        >>> life = lifecycle("new", "paid").on(readings, "new -> paid").rests("new", "paid")
        >>> changes = app.stream("changes", life, on="services")
        >>> from penstock.testing import Driver
        >>> driver = Driver(app)
        >>> driver.pipe(readings, Reading("boiler", datetime(2026, 1, 1, tzinfo=UTC), 71.5))
        >>> driver.read(changes)[0].state
        'paid'
    """
    return LifeCycle(states=states, place=caller())


def _ways(move: str) -> tuple[tuple[str, ...], str]:
    """Read ``cold | warm -> hot``; what it does not say is an empty name, reported by `check`."""
    text = str(move)
    sources, _, target = text.partition(_ARROW)
    return tuple(each.strip() for each in sources.split(_OR)), target.strip()
