"""Queries that join, without a bound in time: q3, q20, q23. Their state grows with the stream."""

import answers
from pyspark.sql import DataFrame
from views import TS, Views

from penstock import App

__all__ = ["declare_joins"]


def declare_joins(app: App, views: Views) -> None:
    """Declare the joins."""
    events = views.events

    @app.pipeline(reads=events, writes=app.stream("q3.answer", answers.Q3))
    def q3(events: DataFrame) -> DataFrame:
        """Find who sells things of one category in three states."""
        auctions = views.auctions(events.where("auction.category = 10"), "id", "seller")
        people = views.people(
            events.where("person.state in ('OR', 'ID', 'CA')"), "id", "name", "city", "state"
        )
        found = auctions.alias("a").join(people.alias("p"), auctions["seller"] == people["id"])
        return found.selectExpr("p.name", "p.city", "p.state", "a.id")

    @app.pipeline(reads=events, writes=app.stream("q20.answer", answers.Q20))
    def q20(events: DataFrame) -> DataFrame:
        """Add to each bid what its auction says, for one category."""
        auctions = views.auctions(
            events.where("auction.category = 10"), "id", "seller", "category", "expires"
        )
        bids = views.bids(events, "auction", "bidder", "price").selectExpr("*", TS)
        found = bids.join(auctions, bids["auction"] == auctions["id"])
        return found.select("auction", "bidder", "price", "ts", "seller", "category", "expires")

    @app.pipeline(reads=events, writes=app.stream("q23.answer", answers.Q23))
    def q23(events: DataFrame) -> DataFrame:
        """Find the bids of people who sell, once for each auction of theirs."""
        bids = views.bids(events, "bidder", "price").drop("at")
        people = views.people(events, "id", "name").select("id", "name")
        auctions = views.auctions(events, "id", "seller").selectExpr("id as auction_id", "seller")
        named = bids.join(people, bids["bidder"] == people["id"])
        found = named.join(auctions, named["bidder"] == auctions["seller"])
        return found.select("bidder", "price", "seq", "name", "auction_id")
