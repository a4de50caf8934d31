"""Queries over windows, whose answers come once, when the watermark has passed: q5, q7, q8, q11.

And q12, whose windows are those of the clock.
"""

import answers
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as every PySpark program calls it
from views import TS, Views

from penstock import App

__all__ = ["declare_clock_windows", "declare_windows"]

_START = "unix_millis(window.start) as window_start"


def declare_windows(app: App, views: Views) -> None:
    """Declare the queries over windows of event time."""
    events = views.events

    @app.pipeline(reads=events, writes=app.stream("q5.answer", answers.Q5))
    def q5(events: DataFrame) -> DataFrame:
        """Find the auctions with most bids of ten seconds, every two seconds."""
        window = F.window("at", "10 seconds", "2 seconds")
        counted = views.bids(events, "auction").groupBy(window, "auction").count()
        most = counted.groupBy("window").agg(
            F.max("count").alias("num"), F.collect_list(F.struct("auction", "count")).alias("all")
        )
        hottest = most.withColumn("all", F.expr("filter(all, each -> each.count = num)"))
        return hottest.selectExpr("explode(all.auction) as auction", _START, "num")

    @app.pipeline(reads=events, writes=app.stream("q7.answer", answers.Q7))
    def q7(events: DataFrame) -> DataFrame:
        """Find the highest bids of each ten seconds: first those of each price, then one price."""
        bids = views.bids(events, "auction", "bidder", "price")
        bid = F.struct("auction", "bidder", F.expr(TS))
        by_price = bids.groupBy(F.window("at", "10 seconds"), "price").agg(
            F.collect_list(bid).alias("bids")
        )
        highest = by_price.groupBy("window").agg(
            F.max("price").alias("price"), F.max_by("bids", "price").alias("bids")
        )
        each = highest.select("window", "price", F.explode("bids").alias("bid"))
        return each.selectExpr("bid.auction", "bid.bidder", "price", "bid.ts", _START)

    @app.pipeline(reads=events, writes=app.stream("q8.answer", answers.Q8))
    def q8(events: DataFrame) -> DataFrame:
        """Find people who sold something in the ten seconds in which they came.

        Two of the same event change nothing here, so they need not be told apart.
        """
        window, who = F.window("at", "10 seconds"), F.coalesce("person.id", "auction.seller")
        people = events.where("person is not null or auction is not null")
        found = people.groupBy(window, who.alias("id")).agg(
            F.max("person.name").alias("name"), F.count("auction.id").alias("auctions")
        )
        sellers = found.where("name is not null and auctions > 0")
        return sellers.selectExpr("id", "name", _START)

    @app.pipeline(reads=events, writes=app.stream("q11.answer", answers.Q11))
    def q11(events: DataFrame) -> DataFrame:
        """Count the bids of each bidder's sessions, which end with ten seconds of silence."""
        session = F.session_window("at", "10 seconds").alias("session")
        counted = views.bids(events, "bidder").groupBy(session, "bidder").count()
        return counted.selectExpr(
            "bidder",
            "count as bid_count",
            "unix_millis(session.start) as starttime",
            "unix_millis(session.end) as endtime",
        )


def declare_clock_windows(app: App, views: Views) -> None:
    """Declare the query whose windows are those of the clock."""

    @app.pipeline(reads=views.events, writes=app.table("q12.answer", answers.Q12))
    def q12(events: DataFrame) -> DataFrame:
        """Count each bidder's bids of ten seconds by the clock."""
        bids = views.bids(events, "bidder").withColumn("handled_at", F.current_timestamp())
        window = F.window("handled_at", "10 seconds")
        counted = bids.groupBy("bidder", window).agg(F.count("*").alias("total"))
        return counted.selectExpr("bidder", _START, "total")
