"""A pattern over time as a value: declared once, run by a service, the driver, Spark, a range.

::

    unpaid = (
        pattern(by="order", within="10m")
        .first("order", orders)
        .never("payment", payments)
        .select(order="order.order", amount="order.amount")
    )
"""

from __future__ import annotations

from collections.abc import Sequence as ManyOf
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Literal

from penstock.core.operators.operator import Plan
from penstock.core.patterns.declared import MOST_BEGUN, DeclaredPattern, Skip, WithinOf
from penstock.core.patterns.resolve import read_pattern
from penstock.core.patterns.steps import Element, Group
from penstock.core.place import caller
from penstock.errors import Problem

__all__ = ["Pattern", "pattern"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern(DeclaredPattern):
    """Steps that follow one another in time, for each key; ``pattern()`` begins one.

    ``app.stream`` takes it in place of a record type. Equal patterns find the same matches.

    Examples:
        >>> found = pattern(by="device").first("hot", readings, where="celsius > 90")
        >>> found = found.next("hotter", readings, where="celsius > hot.celsius")
        >>> app.stream("rising", found.select(device="hot.device"), on="services").name
        'rising'
    """

    def select(self, /, **fields: str) -> Pattern:
        """Compute the fields of a result from the records of the steps: ``order="order.order"``.

        ``step.field`` is of the record of a step that takes one; ``first``, ``last``, ``count``,
        ``sum``, ``min``, ``max`` and ``avg`` are of all that it took. The ``by`` fields come first
        by themselves, and ``at``, the event time of the match, last. Without ``select`` a result
        has a field for each step: its record, or the list of its records.
        """
        return replace(self, fields=tuple(fields.items()))

    def after_match(self, skip: Skip, step: str | None = None, *, must: bool = False) -> Pattern:
        """Say which other matches a match discards; without it, none.

        Args:
            skip: ``"to-next"``: those that begin with the same record; ``"past-last"``: those that
                begin at or before its last record; ``"to-first"``, ``"to-last"``: those that begin
                before the first or last record of ``step``.
            step: The step that ``"to-first"`` and ``"to-last"`` are about.
            must: Whether a match without such a record, or that begins with it, is a dead letter.
        """
        return replace(self, skip=skip, skip_step=step, skip_must=must)

    def with_timeouts(self) -> Pattern:
        """Also give begun matches whose time is over, with ``timed_out`` true and the rest null."""
        return replace(self, timeouts=True)

    def results(self, mode: Literal["final", "early"]) -> Pattern:
        """Say when results are given if late records may change them.

        ``"final"`` (the default) holds them back until ``lateness`` is over. ``"early"`` gives them
        when the watermark passes them, and withdraws those that a late record undoes.
        """
        return replace(self, mode=mode)

    @property
    def kind(self) -> str:
        """What it is in a word."""
        return "pattern"

    def reading(self, data: ManyOf[Any]) -> Pattern:
        """Return the same pattern over these streams, one for each of ``reads``."""
        return replace(self, elements=_over(self.elements, self.reads, data))

    def plan(self) -> Plan | list[Problem]:
        """Return it ready to run, or everything that is wrong with it."""
        return read_pattern(self)


def pattern(
    *,
    by: str | tuple[str, ...] = (),
    within: str | timedelta | None = None,
    within_of: WithinOf = "match",
    lateness: str | timedelta = "0s",
    most_begun: int = MOST_BEGUN,
) -> Pattern:
    """Begin a pattern over time: this, then that, within a time, for each key.

    Records are put in order of their event time before they are matched, up to the watermark; later
    ones go to the late ledger. A condition that cannot be computed for a record makes it a dead
    letter. State is bounded by ``within`` and by ``most_begun``: a record that would begin more
    matches of its key becomes a dead letter, and counts as if it had not come.

    Args:
        by: The field, or fields, that keep matches apart; every stream of the pattern has them, and
            is keyed by them.
        within: How long a match may take: last minus first is less than this.
        within_of: ``"match"``, or ``"gap"``: the limit is only between the last step and the record
            before it.
        lateness: How far behind the watermark a record may be and still count.
        most_begun: How many begun matches a key has at most.

    Examples:
        >>> found = (
        ...     pattern(by="device", within="1h")
        ...     .first("hot", readings, where="celsius > 90")
        ...     .never("cooled", readings, where="celsius < 50")
        ...     .select(device="hot.device", celsius="hot.celsius")
        ... )
        >>> app.stream("stuck", found, on="services").record.schema.key
        ('device',)
    """
    names: Any = by
    return Pattern(
        by=tuple(names) if isinstance(names, tuple | list) else (names,),
        within=within,
        within_of=within_of,
        lateness=lateness,
        most_begun=most_begun,
        place=caller(),
    )


def _over(
    elements: tuple[Element, ...], before: ManyOf[Any], after: ManyOf[Any]
) -> tuple[Element, ...]:
    found: list[Element] = []
    for each in elements:
        if isinstance(each, Group):
            inner = _over(each.sequence.elements, before, after)
            found.append(replace(each, sequence=replace(each.sequence, elements=inner)))
        else:
            found.append(replace(each, stream=after[before.index(each.stream)]))
    return tuple(found)
