"""Nexmark events as JSON lines, by the rules of Beam's and nexmark-flink's generators.

    python bench/nexmark/generator.py COUNT [--seed 1] [--tps 10000] [--group 1]
                                      [--late 0.05] [--late-ms 3000] [--dup 0.02] > EVENTS.jsonl

A line holds ``seq``, ``event_type`` (0 person, 1 auction, 2 bid), and ``person``, ``auction`` and
``bid``, two of which are null. The shapes, the skew and the rates are the originals'; the random
numbers are Python's, so the same arguments give the same lines, here and nowhere else.

Event n, counted from 0, is a person if n % 50 is 0, an auction if it is 1 to 3, else a bid. It
happens n/tps seconds after midnight of 2015-07-15, UTC. ``--group`` mixes the order inside groups
of so many events. A bidder's id is counted as in Beam (nexmark-flink adds its base twice).

``--late`` and ``--dup`` are ours: the share of events that come late, by up to ``--late-ms`` of
event time, and of those that come a second time within a second.
"""

import argparse
import heapq
import json
import math
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

__all__ = ["Disorder", "Generator", "event_lines", "events"]

BEGAN_AT = datetime(2015, 7, 15, tzinfo=UTC)
STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
CITIES = (
    "Phoenix",
    "Los Angeles",
    "San Francisco",
    "Boise",
    "Portland",
    "Bend",
    "Redmond",
    "Seattle",
    "Kent",
    "Cheyenne",
)
FIRST_NAMES = (
    "Peter",
    "Paul",
    "Luke",
    "John",
    "Saul",
    "Vicky",
    "Kate",
    "Julie",
    "Sarah",
    "Deiter",
    "Walter",
)
LAST_NAMES = (
    "Shultz",
    "Abrams",
    "Spencer",
    "White",
    "Bartels",
    "Walton",
    "Smith",
    "Jones",
    "Noris",
)
HOT_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
LETTERS = "abcdefghijklmnopqrstuvwxyz"

FIRST_ID = 1000
FIRST_CATEGORY, CATEGORIES = 10, 5
ROUND = 50
"""Events are in rounds: a person, three auctions, forty-six bids."""
AUCTIONS = 3
HOT_EVERY = 100
"""Of so many people or auctions one is hot, until the next."""
ACTIVE_PEOPLE, ACTIVE_AUCTIONS, UNBORN = 1000, 100, 10
CHANNELS = 10_000
PERSON_BYTES, AUCTION_BYTES, BID_BYTES = 200, 500, 100

# The generator takes letters from the random source by the word, many at a time, and gets those
# that ``choice`` would have taken: the upper five bits, where they are below 26.
_WORD_BITS, _WORD_BYTES, _UPPER_BYTE, _UNUSED_BITS = 32, 4, 3, 3
_TO_LETTER = bytes(ord(LETTERS[min(each >> _UNUSED_BITS, 25)]) for each in range(256))
_NO_LETTER = bytes(each for each in range(256) if each >> _UNUSED_BITS >= len(LETTERS))


@dataclass(frozen=True, slots=True)
class Disorder:
    """How the order of arrival differs from that of event time, and what comes twice."""

    group: int = 1
    late: float = 0.0
    late_ms: int = 3000
    dup: float = 0.0


class Generator:
    """Makes the event of a position; positions are asked for in order, from 0."""

    def __init__(self, *, seed: int = 1, tps: int = 10_000, group: int = 1) -> None:
        self._random = random.Random(seed)
        self._tps = tps
        self._group = group
        self._hot_urls = [self._url() for _ in HOT_CHANNELS]
        self._urls = [self._channel_url(number) for number in range(CHANNELS)]

    def milliseconds(self, number: int) -> int:
        """Return when an event happens, counted from the beginning."""
        return int(number * 1_000_000 / self._tps) // 1000

    def event(self, position: int) -> dict[str, Any]:
        """Return the event that comes at a position."""
        number = position // self._group * self._group + position * 953 % self._group
        event: dict[str, Any] = {
            "seq": number,
            "event_type": 0,
            "person": None,
            "auction": None,
            "bid": None,
        }
        offset = number % ROUND
        if offset < 1:
            event["person"] = self._person(number)
        elif offset <= AUCTIONS:
            event.update(event_type=1, auction=self._auction(number))
        else:
            event.update(event_type=2, bid=self._bid(number))
        return event

    def _person(self, number: int) -> dict[str, Any]:
        chance = self._random
        person = {
            "id": FIRST_ID + _last_person(number),
            "name": f"{chance.choice(FIRST_NAMES)} {chance.choice(LAST_NAMES)}",
            "emailAddress": f"{self._words(7)}@{self._words(5)}.com",
            "creditCard": " ".join(f"{chance.randrange(10000):04d}" for _ in range(4)),
            "city": chance.choice(CITIES),
            "state": chance.choice(STATES),
            "dateTime": _text(self.milliseconds(number)),
        }
        texts = ("name", "emailAddress", "creditCard", "city", "state")
        person["extra"] = self._extra(8 + sum(len(person[each]) for each in texts), PERSON_BYTES)
        return person

    def _auction(self, number: int) -> dict[str, Any]:
        chance, began = self._random, self.milliseconds(number)
        hot = chance.randrange(4) > 0
        seller = _hot(_last_person(number)) if hot else self._some_person(number)
        first = self._price()
        span = self.milliseconds(number + ACTIVE_AUCTIONS * ROUND // AUCTIONS) - began
        auction = {
            "id": FIRST_ID + _last_auction(number),
            "itemName": self._words(20),
            "description": self._words(100),
            "initialBid": first,
            "reserve": first + self._price(),
            "dateTime": _text(began),
            "expires": _text(began + 1 + chance.randrange(max(2 * span, 1))),
            "seller": FIRST_ID + seller,
            "category": FIRST_CATEGORY + chance.randrange(CATEGORIES),
        }
        said = len(auction["itemName"]) + len(auction["description"])
        auction["extra"] = self._extra(48 + said, AUCTION_BYTES)
        return auction

    def _bid(self, number: int) -> dict[str, Any]:
        chance = self._random
        hot = chance.randrange(2) > 0
        auction = _hot(_last_auction(number)) if hot else self._some_auction(number)
        hot = chance.randrange(4) > 0
        bidder = _hot(_last_person(number)) + 1 if hot else self._some_person(number)
        bid = {
            "auction": FIRST_ID + auction,
            "bidder": FIRST_ID + bidder,
            "price": self._price(),
        }
        if chance.randrange(2) > 0:
            index = chance.randrange(len(HOT_CHANNELS))
            bid["channel"], bid["url"] = HOT_CHANNELS[index], self._hot_urls[index]
        else:
            index = chance.randrange(CHANNELS)
            bid["channel"], bid["url"] = f"channel-{index}", self._urls[index]
        bid["dateTime"] = _text(self.milliseconds(number))
        bid["extra"] = self._extra(32, BID_BYTES)
        return bid

    def _some_person(self, number: int) -> int:
        people = _last_person(number) + 1
        active = min(people, ACTIVE_PEOPLE)
        return people - active + self._random.randrange(active + UNBORN)

    def _some_auction(self, number: int) -> int:
        last = _last_auction(number)
        first = max(last - ACTIVE_AUCTIONS, 0)
        return first + self._random.randrange(last - first + 1 + UNBORN)

    def _price(self) -> int:
        return math.floor(math.pow(10.0, self._random.random() * 6.0) * 100.0 + 0.5)

    def _url(self) -> str:
        path = "/".join(self._words(5, gap="_") for _ in range(3))
        return f"https://www.nexmark.com/{path}/item.htm?query=1"

    def _channel_url(self, number: int) -> str:
        url = self._url()
        if self._random.randrange(10) == 0:
            return url
        reversed_bits = int(format(number, "032b")[::-1], 2)
        signed = reversed_bits - (1 << 32) if reversed_bits >= 1 << 31 else reversed_bits
        return f"{url}&channel_id={abs(signed)}"

    def _words(self, longest: int, *, gap: str = " ") -> str:
        chance = self._random
        length = 3 + chance.randrange(longest - 3)
        found = (
            gap if chance.randrange(13) == 0 else chance.choice(LETTERS) for _ in range(length)
        )
        return "".join(found).strip()

    def _extra(self, length: int, wanted: int) -> str:
        """Return letters that fill up to about the wanted length."""
        if length > wanted:
            return ""
        missing = wanted - length
        spread = round(missing * 0.2)
        return self._letters(
            missing - spread + (self._random.randrange(2 * spread) if spread else 0)
        )

    def _letters(self, length: int) -> str:
        found = b""
        while missing := length - len(found):
            words = self._random.getrandbits(_WORD_BITS * missing)
            upper = words.to_bytes(_WORD_BYTES * missing, "little")[_UPPER_BYTE::_WORD_BYTES]
            found += upper.translate(_TO_LETTER, _NO_LETTER)
        return found.decode()


def events(
    number: int, *, seed: int = 1, tps: int = 10_000, disorder: Disorder | None = None
) -> Iterator[dict[str, Any]]:
    """Yield so many events, and those that come twice, in the order of their arrival."""
    how = disorder or Disorder()
    generator = Generator(seed=seed, tps=tps, group=how.group)
    chance, order = random.Random(seed + 1), count()
    held: list[tuple[int, int, dict[str, Any]]] = []
    for position in range(number):
        event, now = generator.event(position), generator.milliseconds(position)
        while held and held[0][0] <= now:
            yield heapq.heappop(held)[2]
        if how.dup and chance.random() < how.dup:
            heapq.heappush(held, (now + 1 + chance.randrange(1000), next(order), event))
        if how.late and chance.random() < how.late:
            heapq.heappush(held, (now + 1 + chance.randrange(how.late_ms), next(order), event))
        else:
            yield event
    while held:
        yield heapq.heappop(held)[2]


def event_lines(
    number: int, *, seed: int = 1, tps: int = 10_000, disorder: Disorder | None = None
) -> Iterator[str]:
    """Yield the events of :func:`events` as lines of JSON."""
    for event in events(number, seed=seed, tps=tps, disorder=disorder):
        yield json.dumps(event, separators=(",", ":")) + "\n"


def _last_person(number: int) -> int:
    return number // ROUND


def _last_auction(number: int) -> int:
    rounds, offset = divmod(number, ROUND)
    if offset < 1:
        return rounds * AUCTIONS - 1
    return rounds * AUCTIONS + min(offset, AUCTIONS) - 1


def _hot(last: int) -> int:
    return last // HOT_EVERY * HOT_EVERY


def _text(milliseconds: int) -> str:
    at = BEGAN_AT + timedelta(milliseconds=milliseconds)
    return f"{at:%Y-%m-%d %H:%M:%S}.{milliseconds % 1000:03d}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("events", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tps", type=int, default=10_000)
    for field in fields(Disorder):
        option = f"--{field.name.replace('_', '-')}"
        parser.add_argument(option, type=type(field.default), default=field.default)
    given = parser.parse_args()
    disorder = Disorder(given.group, given.late, given.late_ms, given.dup)
    sys.stdout.writelines(
        event_lines(given.events, seed=given.seed, tps=given.tps, disorder=disorder)
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
