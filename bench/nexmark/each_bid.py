"""Queries that look at one bid at a time: q0, q1, q2, q10, q13, q14, q21, q22."""

import answers
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as every PySpark program calls it
from views import TS, Views

from penstock import App

__all__ = ["SIDE_INPUT", "SIDE_ROWS", "declare_each_bid", "declare_lakes"]

SIDE_INPUT = "side_input"
SIDE_ROWS = 10_000
"""How many rows the side input of q13 has; an auction's is its id modulo this."""

_EURO = "price * 908 as price_milli"


def declare_each_bid(app: App, views: Views) -> None:
    """Declare the queries whose answer on a bid is at most one row."""
    events = views.events

    @app.pipeline(reads=events, writes=app.stream("q0.answer", answers.Q0))
    def q0(events: DataFrame) -> DataFrame:
        """Pass bids through: what the way itself costs."""
        bids = views.bids(events, "auction", "bidder", "price", "extra")
        return bids.selectExpr("auction", "bidder", "price", TS, "extra")

    @app.pipeline(reads=events, writes=app.stream("q1.answer", answers.Q1))
    def q1(events: DataFrame) -> DataFrame:
        """Give prices in another currency."""
        bids = views.bids(events, "auction", "bidder", "price", "extra")
        return bids.selectExpr("auction", "bidder", _EURO, TS, "extra")

    @app.pipeline(reads=events, writes=app.stream("q2.answer", answers.Q2))
    def q2(events: DataFrame) -> DataFrame:
        """Choose bids by their auction."""
        bids = views.bids(events.where("bid.auction % 123 = 0"), "auction", "price")
        return bids.select("auction", "price")

    @app.pipeline(reads=events, writes=app.stream("q14.answer", answers.Q14))
    def q14(events: DataFrame) -> DataFrame:
        """Choose bids by price, tell day from night, and count letters."""
        wanted = events.where("bid.price * 908 > 1000000000 and bid.price * 908 < 50000000000")
        kind = """case when hour(at) between 8 and 18 then 'dayTime'
            when hour(at) <= 6 or hour(at) >= 20 then 'nightTime' else 'otherTime' end"""
        letters = "length(extra) - length(replace(extra, 'c', ''))"
        return views.bids(wanted, "auction", "bidder", "price", "extra").selectExpr(
            "auction", "bidder", _EURO, f"{kind} as bid_time_type", TS, f"{letters} as c_counts"
        )

    @app.pipeline(reads=events, writes=app.stream("q21.answer", answers.Q21))
    def q21(events: DataFrame) -> DataFrame:
        """Give each channel its number: the large ones by name, others as their URL says."""
        bids = views.bids(events, "auction", "bidder", "price", "channel", "url")
        number = r"""case lower(channel) when 'apple' then '0' when 'google' then '1'
            when 'facebook' then '2' when 'baidu' then '3'
            else nullif(regexp_extract(url, '(&|^)channel_id=([^&]*)', 2), '') end"""
        numbered = bids.selectExpr(
            "auction", "bidder", "price", "channel", f"{number} as channel_id"
        )
        return numbered.where("channel_id is not null")

    @app.pipeline(reads=events, writes=app.stream("q22.answer", answers.Q22))
    def q22(events: DataFrame) -> DataFrame:
        """Take the URL's path apart."""
        bids = views.bids(events, "auction", "bidder", "price", "channel", "url")
        parts = (f"split_part(url, '/', {3 + number}) as dir{number}" for number in (1, 2, 3))
        return bids.selectExpr("auction", "bidder", "price", "channel", *parts)


def declare_lakes(app: App, views: Views) -> None:
    """Declare the queries that write to the lake and look things up there."""
    side = app.lake(SIDE_INPUT, answers.Side)
    logged = app.lake("q10.answer", answers.Q10, partition_by=("dt", "hm"))

    @app.pipeline(reads=views.events, writes=logged)
    def q10(events: DataFrame) -> DataFrame:
        """Log bids to files, by day and minute."""
        bids = views.bids(events, "auction", "bidder", "price", "extra")
        return bids.select(
            F.date_format("at", "yyyy-MM-dd").alias("dt"),
            F.date_format("at", "HH:mm").alias("hm"),
            "auction",
            "bidder",
            "price",
            F.expr(TS),
            "extra",
        )

    @app.pipeline(reads=(views.events, side), writes=app.stream("q13.answer", answers.Q13))
    def q13(events: DataFrame, side: DataFrame) -> DataFrame:
        """Add to each bid what a table beside the stream says."""
        bids = views.bids(events, "auction", "bidder", "price")
        found = bids.join(side, bids["auction"] % SIDE_ROWS == side["key"])
        return found.selectExpr("auction", "bidder", "price", TS, "value")
