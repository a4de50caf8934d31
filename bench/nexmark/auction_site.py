"""The records of the auction site: what happens there, as one stream of events."""

import json
from datetime import UTC, datetime
from typing import Any

from penstock import record

__all__ = ["Auction", "Bid", "Event", "Person", "end_of_input", "event_of"]

_NO_EVENT = -1
_NAMES = {
    "emailAddress": "email_address",
    "creditCard": "credit_card",
    "itemName": "item_name",
    "initialBid": "initial_bid",
}


@record()
class Person:
    """Somebody who may sell and bid."""

    id: int
    name: str
    email_address: str
    credit_card: str
    city: str
    state: str
    extra: str


@record()
class Auction:
    """Something for sale until it expires (in milliseconds since 1970)."""

    id: int
    item_name: str
    description: str
    initial_bid: int
    reserve: int
    expires: int
    seller: int
    category: int
    extra: str


@record()
class Bid:
    """An offer for an auction."""

    auction: int
    bidder: int
    price: int
    channel: str
    url: str
    extra: str


@record(time="at")
class Event:
    """One of the three, when it happened (in milliseconds since 1970), and its number.

    An event that comes a second time has the same number.
    """

    seq: int
    at: int
    person: Person | None
    auction: Auction | None
    bid: Bid | None


def event_of(line: str) -> Event:
    """Return the event that a line of the generator holds."""
    found = json.loads(line)
    person, auction, bid = found["person"], found["auction"], found["bid"]
    return Event(
        seq=found["seq"],
        at=_milliseconds((person or auction or bid)["dateTime"]),
        person=person and Person(**_fields(person)),
        auction=auction and Auction(**_fields(auction)),
        bid=bid and Bid(**_fields(bid)),
    )


def end_of_input(at: int) -> Event:
    """Return an event in which nothing happens but time.

    No query has it in its answer. It moves the watermark, and so closes every window, session and
    auction that is over at its time.
    """
    return Event(seq=_NO_EVENT, at=at, person=None, auction=None, bid=None)


def _fields(found: dict[str, Any]) -> dict[str, Any]:
    fields = {_NAMES.get(name, name): value for name, value in found.items() if name != "dateTime"}
    if "expires" in fields:
        fields["expires"] = _milliseconds(fields["expires"])
    return fields


def _milliseconds(text: str) -> int:
    at = datetime.fromisoformat(text).replace(tzinfo=UTC)
    return round(at.timestamp() * 1000)
