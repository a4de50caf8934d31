"""The events of the site as bids, auctions and people, each of them once."""

from dataclasses import dataclass

from auction_site import Event
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as every PySpark program calls it

from penstock.core.graph.data import Stream

__all__ = ["TS", "Views"]

TS = "unix_millis(at) as ts"
"""When something happened, as the oracle has it."""


@dataclass(frozen=True, slots=True)
class Views:
    """A stream of events, seen by kind. Every row has ``seq`` and ``at`` beside what is asked for.

    ``once`` is whether an event that comes twice is taken once. What has come is remembered for as
    long as the watermark lets it come again, and a shuffle more is the price.
    """

    events: Stream[Event]
    once: bool = True

    def bids(self, events: DataFrame, *columns: str) -> DataFrame:
        """Return the bids."""
        return self._rows(events, "bid", columns)

    def auctions(self, events: DataFrame, *columns: str) -> DataFrame:
        """Return the auctions."""
        return self._rows(events, "auction", columns)

    def people(self, events: DataFrame, *columns: str) -> DataFrame:
        """Return the people."""
        return self._rows(events, "person", columns)

    def _rows(self, events: DataFrame, kind: str, columns: tuple[str, ...]) -> DataFrame:
        found: list[Column] = [F.col(f"{kind}.{name}").alias(name) for name in columns]
        rows = events.where(F.col(kind).isNotNull()).select("seq", "at", *found)
        return rows.dropDuplicatesWithinWatermark(["seq"]) if self.once else rows
