"""Queries whose answers change for as long as bids come, in tables: q15 to q19.

And those about winning bids: q9, which gives each when its auction is over, and q4 and q6, which
add them up and so read the stream of them.
"""

import answers
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as every PySpark program calls it
from views import Views
from winning import winning_bids

from penstock import App

__all__ = ["declare_standings", "declare_winning"]

_DAY = "date_format(at, 'yyyy-MM-dd') as day"
_RANKS = {
    "total": "true",
    "rank1": "price < 10000",
    "rank2": "price >= 10000 and price < 1000000",
    "rank3": "price >= 1000000",
}


def declare_standings(app: App, views: Views) -> None:
    """Declare the queries that keep a row for each key."""
    events = views.events

    @app.pipeline(reads=events, writes=app.table("q15.answer", answers.Q15))
    def q15(events: DataFrame) -> DataFrame:
        """Count a day's bids, bidders and auctions, in all and by rank of price."""
        bids = views.bids(events, "auction", "bidder", "price")
        return bids.groupBy(F.expr(_DAY)).agg(*_bids(), *_distinct("bidder"), *_distinct("auction"))

    @app.pipeline(reads=events, writes=app.table("q16.answer", answers.Q16))
    def q16(events: DataFrame) -> DataFrame:
        """Count the same for each channel, and say when it was last used."""
        bids = views.bids(events, "auction", "bidder", "price", "channel")
        minute = F.max(F.date_format("at", "HH:mm")).alias("minute")
        return bids.groupBy("channel", F.expr(_DAY)).agg(
            minute, *_bids(), *_distinct("bidder"), *_distinct("auction")
        )

    @app.pipeline(reads=events, writes=app.table("q17.answer", answers.Q17))
    def q17(events: DataFrame) -> DataFrame:
        """Keep each auction's bids of a day: how many of which rank, the range, mean and sum."""
        bids = views.bids(events, "auction", "price")
        prices = {"min": F.min, "max": F.max, "avg": F.avg, "sum": F.sum}
        return bids.groupBy("auction", F.expr(_DAY)).agg(
            *_bids(), *(of("price").alias(f"{name}_price") for name, of in prices.items())
        )

    @app.pipeline(reads=events, writes=app.table("q18.answer", answers.Q18))
    def q18(events: DataFrame) -> DataFrame:
        """Keep the last bid of each bidder for each auction."""
        bids = views.bids(events, "auction", "bidder", "price", "channel", "url")
        bid = F.struct("at", "seq", "price", "channel", "url")
        last = bids.groupBy("auction", "bidder").agg(F.max(bid).alias("last"))
        ts = F.unix_millis("last.at").alias("ts")
        return last.select("auction", "bidder", "last.price", "last.channel", "last.url", ts)

    @app.pipeline(reads=events, writes=app.table("q19.answer", answers.Q19))
    def q19(events: DataFrame) -> DataFrame:
        """Keep the ten highest bids for each auction."""
        bids = views.bids(events, "auction", "price")
        top = bids.groupBy("auction").agg(F.max_by("price", "price", 10).alias("prices"))
        ranked = top.select("auction", F.posexplode("prices").alias("rank", "price"))
        return ranked.selectExpr("auction", "price", "rank + 1 as rank_number")


def declare_winning(app: App, views: Views) -> None:
    """Declare the queries about winning bids."""
    winning = app.stream("winning", answers.WinningBid)

    @app.pipeline(reads=views.events, writes=app.stream("q9.answer", answers.Q9))
    def q9(events: DataFrame) -> DataFrame:
        """Give the winning bid of each auction when it is over."""
        return winning_bids(events).drop("bid_seq")

    @app.pipeline(reads=views.events, writes=winning)
    def closing(events: DataFrame) -> DataFrame:
        """Give the same to those who go on from there."""
        return winning_bids(events)

    @app.pipeline(reads=winning, writes=app.table("q4.answer", answers.Q4))
    def q4(winning: DataFrame) -> DataFrame:
        """Keep the mean price of winning bids in each category."""
        return winning.groupBy("category").agg(F.avg("price").alias("avg_final"))

    @app.pipeline(reads=winning, writes=app.table("q6.answer", answers.Q6))
    def q6(winning: DataFrame) -> DataFrame:
        """Keep the mean price of the winning bids in each seller's last ten auctions."""
        by_time = F.struct("bid_ts", "bid_seq")
        last = winning.groupBy("seller").agg(F.max_by("price", by_time, 10).alias("prices"))
        mean = "aggregate(prices, 0D, (sum, each) -> sum + each) / size(prices)"
        return last.selectExpr("seller", f"{mean} as avg_price")


def _bids() -> list[Column]:
    return [F.count_if(F.expr(of)).alias(f"{rank}_bids") for rank, of in _RANKS.items()]


def _distinct(name: str) -> list[Column]:
    """Count values exactly; a stream has no ``count(distinct ...)``, but it has sets."""
    return [
        F.size(F.collect_set(F.when(F.expr(of), F.col(name)))).alias(f"{rank}_{name}s")
        for rank, of in _RANKS.items()
    ]
