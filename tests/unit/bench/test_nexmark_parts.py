"""The parts of the Nexmark queries that need neither broker nor Spark."""

import json
import random
import runpy
import sys
import threading
from pathlib import Path

import pytest

from penstock.core.rules.check import check
from penstock.core.status.report import PartReport

sys.path.insert(0, str(Path(__file__).parents[3] / "bench" / "nexmark"))

from auction_book import AuctionBook, Offer, Sale, Winner
from auction_site import event_of
from ending import Ending
from generator import Disorder, event_lines, events
from nexmark import QUERIES, nexmark
from oracle import Oracle

PROGRAMS = Path(__file__).parents[3] / "bench" / "nexmark"


def offer(price: int, *, ts: int, seq: int = 0, bidder: int = 1) -> Offer:
    return Offer(price, -ts, -seq, bidder)


def test_the_application_declares_every_query_and_has_no_problems():
    graph = nexmark().graph
    assert check(graph) == []
    assert {part.name for part in graph.parts} == {*QUERIES, "closing"}


def test_an_event_of_the_generator_becomes_a_record():
    person, auction, *_, bid = (event_of(line) for line in event_lines(5, seed=2, tps=10))
    assert (person.seq, person.at, person.auction, person.bid) == (0, 1436918400000, None, None)
    assert person.person.id == 1000
    assert auction.at == 1436918400100
    assert auction.auction.expires > auction.at
    assert (bid.seq, bid.at) == (4, 1436918400400)
    assert bid.bid.price >= 100


def test_the_highest_bid_while_the_auction_is_open_wins_and_of_equal_ones_the_earliest():
    book = AuctionBook()
    book.open(7, Sale(seller=3, category=10, opened=100, expires=200))
    for each in (
        offer(900, ts=99),
        offer(500, ts=150, seq=9, bidder=5),
        offer(500, ts=150, seq=8, bidder=6),
        offer(500, ts=160, seq=1),
        offer(400, ts=200),
        offer(999, ts=201),
    ):
        book.bid(7, each)
    assert list(book.close(199)) == []
    assert book.next_end == 200
    assert list(book.close(200)) == [Winner(7, 3, 10, 6, 500, 150, 8)]
    assert list(book.close(1000)) == []
    assert book.next_end is None


def test_bids_that_come_before_their_auction_wait_for_it_and_no_longer_than_it_can_come():
    book = AuctionBook()
    book.bid(7, offer(500, ts=150))
    book.bid(8, offer(500, ts=150))
    book = AuctionBook.unpack(book.pack())
    assert list(book.close(149)) == []
    book.open(7, Sale(seller=3, category=10, opened=150, expires=150))
    assert [winner.id for winner in book.close(150)] == [7]
    assert len(book.pack()) == len(AuctionBook().pack())


def test_a_book_that_hears_everything_twice_in_any_order_gives_the_oracles_answer(tmp_path):
    file = tmp_path / "events.jsonl"
    file.write_text("".join(event_lines(2000, seed=4, tps=100)))
    records = [event_of(line) for line in file.read_text().splitlines()] * 2
    random.Random(1).shuffle(records)
    book = AuctionBook()
    for event in records:
        if event.auction:
            auction = event.auction
            sale = Sale(auction.seller, auction.category, event.at, auction.expires)
            book.open(auction.id, sale)
        elif event.bid:
            bid = event.bid
            book.bid(bid.auction, Offer(bid.price, -event.at, -event.seq, bid.bidder))
    rows = [winner._asdict() for winner in book.close(2**60)]
    for row in rows:
        del row["bid_seq"]
    assert Oracle(file).compare("q9", rows).same


def report(part: str, *, lag: int | None, watermark: float = 0.0) -> PartReport:
    metrics = {"watermark_timestamp_seconds": watermark}
    return PartReport(part=part, kind="pipeline", state="running", at=0.0, lag=lag, metrics=metrics)


@pytest.fixture
def heard() -> list[str]:
    return []


def test_a_run_ends_when_all_is_in_then_the_watermark_has_passed_then_nobody_is_behind(heard):
    stop = threading.Event()
    names = ["q0", "closing", "q4"]
    sends = [lambda: heard.append("part"), lambda: heard.append("end")]
    ending = Ending(names, stop, sends=sends, passed=lambda: 2000)
    ending.report(report("q4", lag=0))
    ending.report(report("q0", lag=0))
    ending.report(report("closing", lag=5))
    assert heard == []
    ending.report(report("closing", lag=0))
    assert heard == ["part"]
    ending.report(report("closing", lag=0))
    assert heard == ["part"]
    ending.report(report("q0", lag=0))
    assert heard == ["part", "end"]
    ending.report(report("q0", lag=None))
    ending.report(report("q0", lag=0))
    ending.report(report("closing", lag=0, watermark=1.999))
    ending.report(report("q4", lag=0))
    assert not stop.is_set()
    ending.report(report("closing", lag=0, watermark=2.0))
    ending.report(report("q4", lag=1))
    assert not stop.is_set()
    ending.report(report("q4", lag=0))
    assert stop.is_set()
    assert heard == ["part", "end"]


def test_a_run_without_queries_upon_others_ends_with_the_watermark(heard):
    stop = threading.Event()
    ending = Ending(["q2"], stop, sends=[lambda: heard.append("end")], passed=lambda: 2000)
    ending.report(report("q2", lag=0))
    assert not stop.is_set()
    ending.report(report("q2", lag=0))
    assert stop.is_set()


def test_disorder_is_within_the_bound_that_the_queries_allow():
    newest = behind = 0
    for event in events(5000, tps=1000, disorder=Disorder(100, 0.05, 3000, 0.02)):
        at = event_of(json.dumps(event)).at
        newest = max(newest, at)
        behind = max(behind, newest - at)
    (stream,) = (data for data in nexmark().graph.data if data.name == "events")
    assert 0 < behind < stream.event_time.disorder.total_seconds() * 1000


@pytest.mark.parametrize("program", ["run", "verify", "bench", "generator", "oracle"])
def test_every_program_loads_with_what_it_takes_from_penstock(program):
    assert callable(runpy.run_path(str(PROGRAMS / f"{program}.py"))["main"])
