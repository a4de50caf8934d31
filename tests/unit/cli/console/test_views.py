"""Documents of views that need no log: panes put to their windows, the late ledger, live queries."""

from collections import Counter, OrderedDict
from datetime import UTC, datetime
from types import SimpleNamespace

import msgspec
import pytest

from penstock import App, record
from penstock.cli.console.asking import windows as panes
from penstock.cli.console.asking.livequeries import Tries
from penstock.cli.console.asking.windows import BOUNDS
from penstock.cli.console.console import has_views
from penstock.cli.console.log import LogWatcher
from penstock.cli.console.reach import Reach, console_link, new_key
from penstock.core.settings.settings import HttpSettings
from penstock.models import ModelVersion
from penstock.serving.desk.offers import Asked

AT = datetime(2026, 1, 1, tzinfo=UTC)


@record(key="name")
class Item:
    name: str


def pane(key=b"a", *, offset=0, value=None, **facts):
    found = {"pane": "early", "window_start": "1", "window_end": "2", "n": 1} | facts
    body = msgspec.json.encode(found) if value is None else value
    return SimpleNamespace(key=key, value=body, timestamp_at=AT, partition=0, offset=offset)


def taken(*records, wanted=""):
    windows, kinds = OrderedDict(), Counter()
    for each in records:
        panes._take(windows, kinds, each, wanted)
    return panes._told(windows, kinds)


def test_panes_stand_in_their_windows_as_they_came_and_the_newest_window_is_first():
    told = taken(
        pane(offset=1),
        pane(b"b", offset=2),
        pane(offset=3, withdrawn=True),
        pane(offset=4, pane="on_time", n=2),
    )
    assert [(each["key"], each["came"]) for each in told["windows"]] == [("a", 3), ("b", 1)]
    assert told["kinds"] == {"early": 2, "withdrawn": 1, "on_time": 1}
    assert [each["offset"] for each in told["windows"][0]["panes"]] == [1, 3, 4]
    assert told["windows"][0]["panes"][-1]["results"] == {"n": 2}


@pytest.mark.parametrize("value", [b"", b"no", b"[]", b"7", b"{}", b"[" * 5000, b"\xff"])
def test_what_is_no_pane_is_passed_by(value):
    assert taken(pane(value=value)) == {"kinds": {}, "windows": []}


def test_what_is_kept_of_windows_is_bounded_whatever_comes():
    many = [pane(str(n).encode(), offset=n, n="x" * 5000) for n in range(300)]
    told = taken(*many, *(pane(b"299", offset=n, pane=f"kind-{n}") for n in range(300, 400)))
    assert len(told["windows"]) == 100
    assert (told["windows"][0]["came"], len(told["windows"][0]["panes"])) == (101, 30)
    assert len(told["kinds"]) <= 20
    assert len(told["windows"][1]["panes"][0]["results"]) < 2100


def test_late_records_are_counted_by_how_late_and_by_part():
    ledger = panes._Ledger()
    for seconds, reason in [(0.5, "expired"), (5, "expired"), (7200, "closed"), (-9, "ahead")]:
        entry = {
            "part": "counts",
            "topic": "t",
            "partition": 0,
            "offset": 1,
            "group": "[]",
            "happened_at": "2026-01-01T00:00:00Z",
            "reason": reason,
            "late_by_seconds": seconds,
        }
        ledger.take(msgspec.json.encode(entry))
    ledger.take(b"{}")
    told = ledger.document(there=True)
    assert [each["count"] for each in told["by_how_late"]] == [1, 1, 0, 0, 0, 1, 0]
    assert len(told["by_how_late"]) == len(BOUNDS) + 1
    assert told["unreadable"] == 1
    assert told["newest"][0]["reason"] == "ahead"
    assert {(each["reason"], each["count"]) for each in told["parts"]} == {
        ("expired", 2),
        ("closed", 1),
        ("ahead", 1),
    }


@pytest.fixture
def shop():
    app = App("shop")
    table = app.table("items", Item)
    live = app.live_queries("follow", table, rows=2)
    app.gateway("door", live=live)
    app.table("models", ModelVersion)
    return app.graph


def test_live_queries_are_told_with_their_cells_and_who_does_the_work(shop):
    reach = Reach(log=LogWatcher(lambda: None), graph=lambda: shop)
    keys = {("follow.leases", "state_keys"): 3.0}
    (found,) = Tries(reach, lambda *what: keys.get(what)).listing(Asked())
    assert (found["live"], found["gateways"], found["cells"]) == ("follow", ["door"], 4)
    assert found["registered"] == 3.0
    names = {part.name for part in shop.parts}
    assert len(found["matching"]) == 2
    assert len(found["telling"]) == 1
    assert names >= {*found["matching"], *found["telling"], found["leases"]}


@pytest.mark.parametrize(
    ("name", "query", "code"),
    [
        ("nothing", "", "live.unknown"),
        ("follow", '{"filter": 7}', "query.refused"),
        ("follow", "{", "live.document"),
        ("follow", "x" * 30_000, "query.value"),
    ],
)
def test_a_live_query_that_is_none_is_told_with_what_is_wrong(shop, name, query, code):
    reach = Reach(log=LogWatcher(lambda: None), graph=lambda: shop)
    asked = Asked(path={"name": name}, query={"query": query})
    (event,) = Tries(reach, lambda *_: None).stream(asked)
    assert event.kind == "problem"
    assert event.document["code"] == code


def test_the_menu_has_what_an_application_has(shop):
    assert has_views(shop) == {
        "windows": False, "live": True, "models": True, "connectors": True,
    }  # fmt: skip
    assert not any(has_views(None).values())


def test_a_key_is_made_where_the_console_may_write_and_stands_in_the_fragment():
    assert new_key(HttpSettings()) == ""
    key = new_key(HttpSettings(console_writes="on"))
    assert len(key) >= 32
    assert key != new_key(HttpSettings(console_writes="on"))
    assert console_link("http://x", key) == f"http://x/#key={key}"
    assert console_link("http://x", "") == "http://x/"
