"""Winning bids on Spark: auction books in its state store, closed by the watermark.

A book is one value of the state, read and written once in a batch, and there are few of them:
every call to the state is a round trip between Python and the JVM.
"""

from collections.abc import Iterator
from typing import Any

import pandas as pd
from auction_book import AuctionBook, Offer, Sale, Winner
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as every PySpark program calls it
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

__all__ = ["winning_bids"]

_BOOKS = 16
_WINNERS = ", ".join(f"{name} bigint" for name in Winner._fields)


def winning_bids(events: DataFrame) -> DataFrame:
    """Return each auction that had a bid, with the bid that won it, once it is over.

    Bids and auctions that come twice need no care: a book does not count them.
    """
    auction = F.coalesce("auction.id", "bid.auction")
    rows = events.where("auction is not null or bid is not null").select(
        F.pmod(F.hash(auction), F.lit(_BOOKS)).alias("book"),
        "at",
        F.col("auction").isNotNull().alias("opens"),
        auction.alias("id"),
        F.unix_millis("at").alias("ts"),
        "seq",
        F.coalesce("auction.seller", "bid.bidder").alias("who"),
        F.coalesce("auction.category", "bid.price").alias("what"),
        F.coalesce("auction.expires", F.lit(0)).alias("expires"),
    )
    return rows.groupBy("book").transformWithStateInPandas(
        _Closing(), _WINNERS, outputMode="Append", timeMode="EventTime"
    )


class _Closing(StatefulProcessor):
    """Keeps a book, and closes the auctions that the watermark has passed."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._state = handle.getValueState("book", "packed binary")

    # Spark gives the arguments by their names, so these are Spark's.
    def handleInputRows(  # noqa: N802
        self,
        key: Any,  # noqa: ARG002
        rows: Iterator[pd.DataFrame],
        timerValues: Any,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        book = self._book()
        for frame in rows:
            _take(book, frame)
        yield self._closed(book, timerValues)

    def handleExpiredTimer(  # noqa: N802
        self,
        key: Any,  # noqa: ARG002
        timerValues: Any,  # noqa: N803
        expiredTimerInfo: Any,  # noqa: ARG002, N803
    ) -> Iterator[pd.DataFrame]:
        yield self._closed(self._book(), timerValues)

    def close(self) -> None:
        """End a batch; Spark keeps the state."""

    def _book(self) -> AuctionBook:
        found = self._state.get()
        return AuctionBook() if found is None else AuctionBook.unpack(bytes(found[0]))

    def _closed(self, book: AuctionBook, timer_values: Any) -> pd.DataFrame:
        winners = list(book.close(timer_values.getCurrentWatermarkInMs()))
        self._state.update((book.pack(),))
        if (due := book.next_end) is not None:
            self._handle.registerTimer(due)
        return pd.DataFrame(winners, columns=list(Winner._fields)).astype("int64")


def _take(book: AuctionBook, frame: pd.DataFrame) -> None:
    """Take in the auctions first, so that few bids have to wait for theirs."""
    sales = frame[frame["opens"]]
    for auction, *sale in _tuples(sales, "id", "who", "what", "ts", "expires"):
        book.open(auction, Sale(*sale))
    for auction, price, ts, seq, bidder in _tuples(
        frame[~frame["opens"]], "id", "what", "ts", "seq", "who"
    ):
        book.bid(auction, Offer(price, -ts, -seq, bidder))


def _tuples(frame: pd.DataFrame, *names: str) -> Iterator[tuple[int, ...]]:
    return zip(*(frame[name].tolist() for name in names), strict=True)
