"""The batch answers of the Nexmark queries over a file of events, and the comparison with a run's.

    python bench/nexmark/oracle.py answer EVENTS.jsonl [q5 q9 ...]     rows and a digest of each
    python bench/nexmark/oracle.py rows EVENTS.jsonl q5                the rows, as JSON lines
    python bench/nexmark/oracle.py compare EVENTS.jsonl q5 GOT.jsonl   exit code 1 if they differ

DuckDB computes what a stream must have given once all input is in and the watermark has passed
everything: of an updating query the last value of each key. It shares no code with the queries.
Times are milliseconds since 1970. Of events with the same ``seq`` one counts.

Where the originals leave something open: q9 takes the earliest of the highest bids and q18 the
latest bid, by time and then ``seq``; q5 and q7 give every tie; q19 ranks prices, whoever bid them.
q7 has half-open windows. q4, q6 and q9 have no reserve price, as in Flink. q6 is the mean price of
the winning bids of a seller's last ten auctions, by the time of these bids. q11: bids exactly one
gap apart are one session. Of q12, which is in processing time, only the totals can be known, of
q10, whose output are files, how many rows each has.
"""

# ruff: noqa: S608 - no text from outside is in any of the queries

import runpy
from pathlib import Path

runpy.run_path(str(Path(__file__).resolve().parents[2] / "scripts" / "own_python.py"))

import argparse
import hashlib
import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import duckdb

__all__ = ["QUERIES", "Comparison", "Oracle"]

Row = Mapping[str, Any]

DIGITS = 6
"""How many digits behind the point of a mean are compared."""
_SHOWN = 3

_RANKS = {
    "total": "true",
    "rank1": "price < 10000",
    "rank2": "price >= 10000 and price < 1000000",
    "rank3": "price >= 1000000",
}
_COUNTED = {"bids": "*", "bidders": "distinct bidder", "auctions": "distinct auction"}
_STATISTICS = ", ".join(
    f"count({what}) filter ({condition}) as {rank}_{name}"
    for name, what in _COUNTED.items()
    for rank, condition in _RANKS.items()
)
_MINUTE = "strftime(make_timestamp(ts * 1000), '%H:%M')"

QUERIES: Mapping[str, str] = {
    "q0": "select auction, bidder, price, ts, extra from bid",
    "q1": "select auction, bidder, price * 908 as price_milli, ts, extra from bid",
    "q2": "select auction, price from bid where auction % 123 = 0",
    "q3": """
        select name, city, state, auction.id from auction join person on seller = person.id
        where category = 10 and state in ('OR', 'ID', 'CA')""",
    "q4": "select category, avg(price) as avg_final from winning group by category",
    "q5": """
        with counted as (
            select auction, ts // 2000 * 2000 - 2000 * back as window_start, count(*) as num
            from bid cross join range(5) as earlier(back) group by all)
        select auction, window_start, num from counted
        qualify num = max(num) over (partition by window_start)""",
    "q6": """
        with latest as (
            select seller, price from winning
            qualify row_number() over (
                partition by seller order by bid_ts desc, bid_seq desc) <= 10)
        select seller, avg(price) as avg_price from latest group by seller""",
    "q7": """
        select auction, bidder, price, ts, ts // 10000 * 10000 as window_start from bid
        qualify price = max(price) over (partition by ts // 10000)""",
    "q8": """
        select distinct person.id, name, person.ts // 10000 * 10000 as window_start
        from person join auction
        on seller = person.id and auction.ts // 10000 = person.ts // 10000""",
    "q9": "select id, seller, category, bidder, price, bid_ts from winning",
    "q10": f"select day as dt, {_MINUTE} as hm, count(*) as bids from bid group by all",
    "q11": """
        with begun as (
            select *, coalesce(ts - lag(ts) over its > 10000, true) as first
            from bid window its as (partition by bidder order by ts, seq)),
        numbered as (
            select *, count(*) filter (first) over (
                partition by bidder order by ts, seq rows unbounded preceding) as number
            from begun)
        select bidder, count(*) as bid_count, min(ts) as starttime, max(ts) + 10000 as endtime
        from numbered group by bidder, number""",
    "q12": "select bidder, count(*) as total from bid group by bidder",
    "q13": """
        select auction, bidder, price, ts, cast(auction % 10000 as varchar) as value from bid""",
    "q14": """
        select auction, bidder, price * 908 as price_milli,
            case when hour between 8 and 18 then 'dayTime'
                 when hour <= 6 or hour >= 20 then 'nightTime' else 'otherTime' end
                 as bid_time_type,
            ts, length(extra) - length(replace(extra, 'c', '')) as c_counts
        from (select *, ts // 3600000 % 24 as hour from bid)
        where price * 908 > 1000000000 and price * 908 < 50000000000""",
    "q15": f"select day, {_STATISTICS} from bid group by day",
    "q16": f"""
        select channel, day, max({_MINUTE}) as minute, {_STATISTICS}
        from bid group by channel, day""",
    "q17": f"""
        select auction, day, count(*) as total_bids,
            count(*) filter ({_RANKS["rank1"]}) as rank1_bids,
            count(*) filter ({_RANKS["rank2"]}) as rank2_bids,
            count(*) filter ({_RANKS["rank3"]}) as rank3_bids,
            min(price) as min_price, max(price) as max_price, avg(price) as avg_price,
            sum(price) as sum_price
        from bid group by auction, day""",
    "q18": """
        select auction, bidder, price, channel, url, ts from bid
        qualify row_number() over (partition by bidder, auction order by ts desc, seq desc) = 1""",
    "q19": """
        select auction, price,
            row_number() over (partition by auction order by price desc) as rank_number
        from bid qualify rank_number <= 10""",
    "q20": """
        select bid.auction, bidder, price, bid.ts, seller, category, expires
        from bid join auction on bid.auction = auction.id where category = 10""",
    "q21": """
        select auction, bidder, price, channel,
            case lower(channel) when 'apple' then '0' when 'google' then '1'
                when 'facebook' then '2' when 'baidu' then '3' else named end as channel_id
        from (select *, nullif(regexp_extract(url, '(&|^)channel_id=([^&]*)', 2), '') as named
              from bid)
        where channel_id is not null""",
    "q22": """
        select auction, bidder, price, channel, split_part(url, '/', 4) as dir1,
            split_part(url, '/', 5) as dir2, split_part(url, '/', 6) as dir3
        from bid""",
    "q23": """
        select bidder, price, bid.seq, name, auction.id as auction_id
        from bid join person on person.id = bidder join auction on seller = bidder""",
}

_COLUMNS = """{seq: 'bigint', event_type: 'int',
    person: 'struct(id bigint, name varchar, city varchar, state varchar, "dateTime" varchar)',
    auction: 'struct(id bigint, seller bigint, category bigint, "dateTime" varchar,
                     expires varchar)',
    bid: 'struct(auction bigint, bidder bigint, price bigint, channel varchar, url varchar,
                 "dateTime" varchar, extra varchar)'}"""
_MILLISECONDS = "epoch_ms(strptime({}, '%Y-%m-%d %H:%M:%S.%g'))"
_TABLES = {
    "person": "id: person.id, name: person.name, city: person.city, state: person.state",
    "auction": f"""id: auction.id, seller: auction.seller, category: auction.category,
        expires: {_MILLISECONDS.format("auction.expires")}""",
    "bid": """auction: bid.auction, bidder: bid.bidder, price: bid.price, channel: bid.channel,
        url: bid.url, extra: bid.extra, day: left(bid.dateTime, 10)""",
}
_WINNING = """
    create view winning as
    select auction.id, seller, category, bidder, price, bid.ts as bid_ts, bid.seq as bid_seq
    from auction join bid
    on bid.auction = auction.id and bid.ts between auction.ts and auction.expires
    qualify row_number() over (
        partition by auction.id order by price desc, bid.ts, bid.seq) = 1"""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What is the same in two answers, and what only one of them has."""

    right: int
    missing: Counter[tuple[Any, ...]]
    extra: Counter[tuple[Any, ...]]

    @property
    def same(self) -> bool:
        """Whether the answers are the same."""
        return not self.missing and not self.extra

    def __str__(self) -> str:
        """Return how they differ, with some rows of each kind."""
        counts = f"{self.right} rows right, {self.missing.total()} missing"
        lines = [f"{counts}, {self.extra.total()} not asked for"]
        for word, rows in (("missing", self.missing), ("not asked for", self.extra)):
            lines += [f"  {word}: {dict(row)}" for row in list(rows)[:_SHOWN]]
        return "\n".join(lines)


class Oracle:
    """The answers over one file of events."""

    def __init__(self, file: Path) -> None:
        self._database = duckdb.connect()
        self._database.execute("set threads = 1")
        self._database.execute(
            f"""create table event as select * from read_json(
                    ?, format = 'newline_delimited', columns = {_COLUMNS})
                qualify row_number() over (partition by seq) = 1""",
            [str(file)],
        )
        for kind, (name, columns) in enumerate(_TABLES.items()):
            at = _MILLISECONDS.format(f"{name}.dateTime")
            self._database.execute(
                f"create table {name} as select seq, ts: {at}, {columns} from event "
                f"where event_type = {kind}"
            )
        self._database.execute(_WINNING)

    def rows(self, query: str) -> list[dict[str, Any]]:
        """Return the answer of a query, in no particular order."""
        found = self._database.execute(QUERIES[query])
        names = [column[0] for column in found.description or ()]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]

    def compare(self, query: str, rows: Iterable[Row]) -> Comparison:
        """Compare the rows of a run with the answer, both ways; the order is of no matter."""
        want, got = (Counter(map(_canonical, each)) for each in (self.rows(query), rows))
        return Comparison((want & got).total(), want - got, got - want)


def digest(rows: Iterable[Row]) -> str:
    """Return a short text that is the same for the same rows in any order."""
    texts = sorted(json.dumps(_canonical(row)) for row in rows)
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]


def _canonical(row: Row) -> tuple[Any, ...]:
    return tuple(
        (name, round(value, DIGITS) if isinstance(value, float) else value)
        for name, value in sorted(row.items())
    )


def _read(file: Path) -> list[dict[str, Any]]:
    with file.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("answer", "rows", "compare"))
    parser.add_argument("events", type=Path)
    parser.add_argument("queries", nargs="*", help="for compare: the query and the file of rows")
    given = parser.parse_args()
    oracle = Oracle(given.events)
    if given.what == "compare":
        query, file = given.queries
        found = oracle.compare(query, _read(Path(file)))
        print(f"{query}: {found}")
        return 0 if found.same else 1
    for query in given.queries or QUERIES:
        rows = oracle.rows(query)
        if given.what == "answer":
            print(f"{query:4} {len(rows):8} rows  {digest(rows)}")
            continue
        for row in rows:
            print(json.dumps(row))
    return 0


if __name__ == "__main__":
    sys.exit(main())
