"""Aggregations of tables: against a recount of the rows, whatever becomes of them."""

from collections import defaultdict
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.joinmachines import Chain, arrival

from penstock import App, record
from penstock.aggregates import (
    approximate_distinct,
    collect,
    combine,
    count,
    distinct,
    first,
    last,
    maximum,
    mean,
    minimum,
    quantile,
    top,
    total,
    variance,
)
from penstock.core.aggregates.quantile import Quantile
from penstock.core.rules.check import check


@record(key="device", time="at")
class Device:
    device: str
    at: int
    owner: str | None
    load: float | None
    size: int = 0


class Letters:
    """A combiner that can subtract."""

    def zero(self) -> str:
        return ""

    def add(self, held: str, value: str) -> str:
        return held + value

    def subtract(self, held: str, value: str) -> str:
        return held.replace(value, "", 1)

    def merge(self, held: str, other: str) -> str:
        return held + other

    def result(self, held: str) -> str:
        return "".join(sorted(held))


class Span:
    """A combiner that cannot subtract, and changes what it merges."""

    def zero(self) -> dict[str, list[float]]:
        return {"ends": []}

    def add(self, held: dict[str, list[float]], value: float) -> dict[str, list[float]]:
        held["ends"] = [min([value, *held["ends"]]), max([value, *held["ends"]])]
        return held

    def merge(self, held, other):
        held["ends"] += other["ends"]
        held["ends"] = [min(held["ends"]), max(held["ends"])] if held["ends"] else []
        return held

    def result(self, held) -> int | None:
        return held["ends"][1] - held["ends"][0] if held["ends"] else None


AGGREGATES = {
    "devices": count(),
    "loaded": count("load"),
    "load": total("load"),
    "sizes": total("size"),
    "average": mean("load"),
    "least": minimum("load"),
    "most": maximum("load"),
    "all_sizes": collect("size"),
    "largest": top("size", 2),
    "different": distinct("size"),
    "names": combine("device", Letters(), gives=str),
    "begins": first("size"),
    "ends": last("size"),
    "varies": variance("load"),
    "about": approximate_distinct("size"),
    "middle": quantile("size", 0.5),
    "span": combine("size", Span(), gives=int | None),
}
CHANGES = st.lists(
    st.tuples(
        st.sampled_from("abcd"),
        st.sampled_from([None, "x", "y"]),
        st.one_of(st.none(), st.floats(-1e20, 1e20), st.sampled_from([0.1, 0.2, 1e-9])),
        st.integers(-5, 5),
        st.booleans(),
    ),
    max_size=40,
)


def varies(loads):
    if len(loads) < 2:
        return None
    exact = [Fraction(load) for load in loads]
    average = sum(exact) / len(exact)
    return float(sum((each - average) ** 2 for each in exact) / (len(exact) - 1))


def middle(sizes):
    sketch = Quantile(0.5)
    held = sketch.zero()
    for size in sizes:
        held = sketch.add(held, float(size))
    return sketch.result(held)


def recount(rows):
    found = {}
    groups = defaultdict(list)
    for row in rows:
        if row.owner is not None:
            groups[row.owner].append(row)
    for owner, members in groups.items():
        loads = [row.load for row in members if row.load is not None]
        sizes = sorted(row.size for row in members)
        exact = sum(map(Fraction, loads))
        found[owner] = {
            "devices": len(members),
            "loaded": len(loads),
            "load": float(exact) if loads else None,
            "sizes": sum(sizes),
            "average": float(exact / len(loads)) if loads else None,
            "least": min(loads, default=None),
            "most": max(loads, default=None),
            "all_sizes": sizes,
            "largest": sizes[::-1][:2],
            "different": len(set(sizes)),
            "names": "".join(sorted(row.device for row in members)),
            "begins": min((row.at, row.size) for row in members)[1],
            "ends": max((row.at, row.size) for row in members)[1],
            "varies": varies(loads),
            "about": len(set(sizes)),
            "middle": middle(sizes),
            "span": sizes[-1] - sizes[0],
        }
    return found


@settings(max_examples=30)
@given(CHANGES, st.randoms(use_true_random=False))
def test_the_results_are_those_of_the_rows_that_are_there(changes, random):
    app = App("app")
    devices = app.table("devices", Device)
    grouped = devices.group(by="owner").aggregate(**AGGREGATES)
    results = app.table("results", grouped, on="services")
    chain, rows = Chain(app, random), {}
    for number, (device, owner, load, size, deleted) in enumerate(changes):
        row = None if deleted else Device(device, number, owner, load, size)
        rows.pop(device, None)
        if row is not None:
            rows[device] = row
        chain.feed("devices", arrival(0, device, number, 0, offset=number)._replace(record=row))
    chain.settle()
    found = {
        row.owner: {name: getattr(row, name) for name in AGGREGATES}
        for row in chain.table(results).values()
    }
    assert found == recount(rows.values())
    if not found:
        assert not any(name.startswith((b"k", b"v")) for name in chain.store(results))


def test_a_group_that_is_empty_may_be_kept():
    app = App("app")
    devices = app.table("devices", Device)
    kept = devices.group(by="owner", empty="keep").aggregate(devices=count(), load=total("load"))
    results = app.table("results", kept, on="services")
    chain = Chain(app)
    for number, owner in enumerate(["x", "y"]):
        row = Device("a", number, owner, 1.0)
        chain.feed("devices", arrival(0, "a", number, 0, offset=number)._replace(record=row))
    chain.settle()
    assert {row.owner: (row.devices, row.load) for row in chain.table(results).values()} == {
        "x": (0, None),
        "y": (1, 1.0),
    }


@pytest.mark.parametrize(
    ("by", "aggregates", "code"),
    [
        ("owned", {"devices": count()}, "expression.unknown-field"),
        ("load", {"devices": count()}, "window.by"),
        ("owner", {}, "aggregate.none"),
        ("owner", {"at": count()}, "aggregate.name"),
        ("owner", {"owner": count()}, "aggregate.name"),
        ("owner", {"load": total("owner")}, "aggregate.type"),
    ],
)
def test_what_is_wrong_is_said_at_check(by, aggregates, code):
    app = App("app")
    devices = app.table("devices", Device)
    app.table("results", devices.group(by=by).aggregate(**aggregates), on="services")
    assert code in {problem.code for problem in check(app.graph)}
