"""A join as a value: declared once, run by services, Spark, the driver, or over a finished range.

::

    paid = (
        orders.join(payments, on="order", how="left", after="10m", lateness="1m")
        .select(order="orders.order", amount="payments.amount")
    )
    app.stream("paid", paid, on="services")
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Literal

from penstock.core.derived.selected import Selected
from penstock.core.joins.declared import DeclaredJoin, How, On, Span
from penstock.core.joins.resolve import delay_of, reads_of, resolve
from penstock.core.operators.broadcast import Broadcast
from penstock.core.operators.operator import Plan
from penstock.core.place import caller
from penstock.errors import Problem

__all__ = ["Join", "joined"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Join(DeclaredJoin):
    """Two streams or tables, joined; ``join`` of a stream or table makes it.

    ``app.stream`` and ``app.table`` take it in place of a record type. Without ``select`` a result
    has the fields of ``on``, and the record of each side under its name, null where it is missing.

    Examples:
        >>> from penstock.tables import broadcast
        >>> names = app.table("names", Alarm)
        >>> named = readings.join(names, on="device").select(
        ...     device="device", celsius="readings.celsius", text="names.text"
        ... )
        >>> app.stream("named", named, on="services").record.schema.key
        ('device',)
    """

    @property
    def kind(self) -> str:
        """Return what it is."""
        return "join"

    def where(self, condition: str) -> Join:
        """Keep the results for which the expression is true; false and null are left out.

        Examples:
            >>> names = app.table("names", Alarm)
            >>> warm = readings.join(names, on="device").where("readings.celsius > 20")
        """
        return replace(self, steps=(*self.steps, condition))

    def select(self, /, **fields: str) -> Join:
        """Compute the fields of the results: the field of a side is its name, a dot, the field.

        The results have a key where the fields of ``on`` are among the new ones.

        Examples:
            >>> names = app.table("names", Alarm)
            >>> named = readings.join(names, on="device").select(
            ...     device="device", text="coalesce(names.text, 'unknown')"
            ... )
        """
        return replace(self, steps=(*self.steps, tuple(fields.items())))

    def results(self, emits: Literal["final", "early"]) -> Join:
        """Say when a row of a stream that has no partner gives its result.

        ``"final"``, the default: when its window has closed. ``"early"``: at once. If a partner
        comes later, the result without one is withdrawn.

        Examples:
            >>> others = app.stream("others", Reading)
            >>> early = readings.join(others, on="device", how="left", within="1m").results("early")
        """
        return replace(self, emits=emits)

    @property
    def reads(self) -> tuple[Any, ...]:
        """What it reads."""
        return reads_of(self) if self.given is None else self.given

    @property
    def delay(self) -> timedelta:
        """How far the event times of results may go back, where those of what is read do not."""
        return delay_of(self)

    def reading(self, data: Sequence[Any]) -> Join:
        """Return the same join over these streams and tables."""
        return replace(self, given=tuple(data))

    def plan(self) -> Plan | list[Problem]:
        """Return it ready to run, or everything that is wrong with it."""
        return resolve(self)


def joined(
    left: Any,
    right: Any,
    *,
    on: On,
    how: How = "inner",
    within: Span | None = None,
    before: Span | None = None,
    after: Span | None = None,
    lateness: Span = "0s",
    wait: Span | None = None,
    repartition: bool = False,
    names: tuple[str, str] | None = None,
) -> Join:
    """Return the declaration, from what the user gave."""
    fields: Any = tuple(on) if isinstance(on, tuple | list) else (on,)
    return Join(
        left=Selected.of(left),
        right=right if isinstance(right, Broadcast) else Selected.of(right),
        on=tuple(on.items()) if isinstance(on, Mapping) else tuple((each, each) for each in fields),
        how=how,
        before=within if before is None else before,
        after=within if after is None else after,
        lateness=lateness,
        wait=wait,
        repartition=repartition,
        names=None if names is None else tuple(names),  # type: ignore[arg-type]
        place=caller(),
    )
