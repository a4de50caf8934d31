"""The Nexmark queries as one application: a stream of events, a pipeline for each query."""

from auction_site import Event
from each_bid import declare_each_bid, declare_lakes
from joins import declare_joins
from standings import declare_standings, declare_winning
from views import Views
from windows import declare_clock_windows, declare_windows

from penstock import App, EventTime

__all__ = ["CLOSED_BY_WATERMARK", "EVENTS", "FED_BY", "QUERIES", "nexmark"]

EVENTS = "events"
QUERIES = tuple(f"q{number}" for number in range(24))

CLOSED_BY_WATERMARK = frozenset({"q5", "q7", "q8", "q9", "q11", "closing"})
"""The pipelines that hold an answer back until the watermark has passed it."""

FED_BY = {"q4": "closing", "q6": "closing"}
"""The queries that do not read the events, and the pipeline that writes what they read."""


def nexmark(*, partitions: int = 2, disorder: str = "10s", once: bool = True) -> App:
    """Declare the stream and every query.

    Events that come more than ``disorder`` of event time behind the newest are late; ``once``:
    events that come twice count once.
    """
    app = App("nexmark")
    events = app.stream(
        EVENTS, Event, partitions=partitions, event_time=EventTime(disorder=disorder)
    )
    views = Views(events, once)
    declare_each_bid(app, views)
    declare_lakes(app, views)
    declare_windows(app, views)
    declare_clock_windows(app, views)
    declare_joins(app, views)
    declare_standings(app, views)
    declare_winning(app, views)
    return app
