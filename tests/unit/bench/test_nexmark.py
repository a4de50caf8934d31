"""The Nexmark events and their answers, which judge the queries, are themselves judged here."""

import json
import sys
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "bench" / "nexmark"))

from generator import Disorder, event_lines, events
from oracle import QUERIES, Oracle

DISORDER = Disorder(group=100, late=0.05, late_ms=3000, dup=0.02)
COUNT = 3000
TPS = 100
"""Half a minute of event time: several windows and sessions."""


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("nexmark") / "events.jsonl"
    with path.open("w") as lines:
        lines.writelines(event_lines(COUNT, seed=5, tps=TPS, disorder=DISORDER))
    return path


@pytest.fixture(scope="module")
def oracle(file) -> Oracle:
    return Oracle(file)


def bids(file: Path) -> list[dict]:
    """The bids without DuckDB: each once, with its time in milliseconds of that day."""
    found = {event["seq"]: event for event in map(json.loads, file.read_text().splitlines())}
    return [
        event["bid"] | {"seq": seq, "ts": milliseconds(event["bid"]["dateTime"])}
        for seq, event in found.items()
        if event["bid"]
    ]


def milliseconds(text: str) -> int:
    hour, minute, second = text[11:].split(":")
    return round((int(hour) * 3600 + int(minute) * 60 + float(second)) * 1000)


def test_the_same_arguments_give_the_same_events_and_another_seed_gives_others():
    first, again, other = (list(event_lines(500, seed=seed)) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_events_come_in_rounds_of_a_person_three_auctions_and_bids():
    kinds = Counter(event["event_type"] for event in events(1000))
    assert kinds == {0: 20, 1: 60, 2: 920}
    assert all(
        sum(event[name] is not None for name in ("person", "auction", "bid")) == 1
        for event in events(200)
    )


def test_disorder_moves_and_doubles_events_and_loses_none():
    plain = [event["seq"] for event in events(2000, seed=3, tps=TPS)]
    mixed = [event["seq"] for event in events(2000, seed=3, tps=TPS, disorder=DISORDER)]
    assert plain == list(range(2000))
    assert set(mixed) == set(plain)
    assert 10 < len(mixed) - len(plain) < 100
    backwards = max(before - after for before, after in pairwise(mixed))
    assert 100 < backwards <= TPS * DISORDER.late_ms // 1000 + DISORDER.group


def test_every_query_has_an_answer(oracle):
    assert list(QUERIES) == [f"q{number}" for number in range(24)]
    assert all(oracle.rows(query) for query in QUERIES)


def test_the_answers_are_those_of_a_plain_count(file, oracle):
    found = bids(file)
    hops = Counter(
        (bid["ts"] // 2000 * 2000 - 2000 * back, bid["auction"])
        for bid in found
        for back in range(5)
    )
    most = defaultdict(int)
    for (start, _), count in hops.items():
        most[start] = max(most[start], count)
    hottest = {(start, who, count) for (start, who), count in hops.items() if count == most[start]}
    day = 86_400_000
    assert {
        ((row["window_start"] + day // 2) % day - day // 2, row["auction"], row["num"])
        for row in oracle.rows("q5")
    } == hottest
    latest = {}
    for bid in sorted(found, key=lambda bid: (bid["ts"], bid["seq"])):
        latest[bid["bidder"], bid["auction"]] = bid["price"]
    assert {(row["bidder"], row["auction"]): row["price"] for row in oracle.rows("q18")} == latest
    sessions = Counter()
    times = defaultdict(list)
    for bid in found:
        times[bid["bidder"]].append(bid["ts"])
    for bidder, instants in times.items():
        gaps = [after - before for before, after in pairwise(sorted(instants))]
        sessions[bidder] = 1 + sum(gap > 10_000 for gap in gaps)
    assert Counter(row["bidder"] for row in oracle.rows("q11")) == sessions


@pytest.mark.parametrize("query", QUERIES)
def test_a_right_answer_in_any_order_is_right(oracle, query):
    rows = json.loads(json.dumps(oracle.rows(query)[::-1]))
    found = oracle.compare(query, rows)
    assert found.same
    assert found.right == len(rows)


@pytest.mark.parametrize("query", QUERIES)
def test_a_row_that_is_lost_doubled_or_changed_is_found(oracle, query):
    rows = oracle.rows(query)
    lost, doubled = oracle.compare(query, rows[1:]), oracle.compare(query, [*rows, rows[0]])
    assert (lost.missing.total(), lost.extra.total(), lost.same) == (1, 0, False)
    assert (doubled.missing.total(), doubled.extra.total(), doubled.same) == (0, 1, False)
    name = next(name for name, value in rows[0].items() if isinstance(value, int | float))
    changed = oracle.compare(query, [rows[0] | {name: rows[0][name] + 1_000_003}, *rows[1:]])
    assert (changed.missing.total(), changed.extra.total(), changed.same) == (1, 1, False)
    assert "1 missing, 1 not asked for" in str(changed)
