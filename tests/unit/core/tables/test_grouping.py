"""Aggregations of tables: against a recount of the rows, whatever becomes of them."""

from collections import defaultdict
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.joinmachines import Chain, arrival

from penstock import App, record
from penstock.aggregates import (
    collect,
    combine,
    count,
    distinct,
    maximum,
    mean,
    minimum,
    top,
    total,
)
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
