"""An operator's machine in buckets, as Spark hosts it: without Spark, with what travels packed."""

import pickle
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import msgspec
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock import App, EventTime, record
from penstock.core.graph.parts import Pipeline
from penstock.core.instants import micros
from penstock.core.panes.pages import PagedStore
from penstock.core.panes.store import MemoryStore
from penstock.core.rules.check import check
from penstock.core.wiring.lookup import find_part
from penstock.core.wiring.operators import plan_of
from penstock.core.wiring.results import result_destination
from penstock.pipelines.operators.hosting import Hosting
from penstock.pipelines.operators.processor import BatchMachines
from penstock.pipelines.operators.routing import BUCKET, COLUMNS, PAYLOAD, PLACES, Router, unpack

START_AT = datetime(2026, 1, 1, tzinfo=UTC)
BUCKETS = (7, 11, 13)
CLOCK = micros(START_AT) + 10**12


@record(key="device", time="at")
class Reading:
    device: str
    at: datetime
    id: int


def application(*, disorder: str = "1h") -> App:
    app = App("once")
    readings = app.stream("readings", Reading, event_time=EventTime(disorder=disorder))
    app.stream("once", readings.deduplicate(by="id", within="10m"), on="spark")
    return app


def hosting(*, disorder: str = "1h") -> Hosting:
    graph = application(disorder=disorder).graph
    assert check(graph) == []
    part = find_part(graph, "once.filling", Pipeline)
    made = Hosting(plan_of(part), result_destination(graph, part), ("readings",))
    return pickle.loads(pickle.dumps(made))  # noqa: S301 - our own


Row = tuple[int, str, int, float]


def rows(came: list[Row], *, first: int = 0) -> pa.RecordBatch:
    """Return rows as the gate gives them: partition, device, id, second."""
    found = []
    for offset, (partition, device, number, second) in enumerate(came, first):
        at = START_AT + timedelta(seconds=second)
        value = msgspec.json.encode({"device": device, "at": at, "id": number})
        stamp = micros(START_AT) + offset
        found.append((0, partition, offset, stamp, CLOCK, device.encode(), value, micros(at)))
    columns = list(zip(*found, strict=True)) or [[]] * len(COLUMNS)
    kinds = [*[pa.int64()] * 5, pa.binary(), pa.binary(), pa.int64()]
    arrays = [pa.array(each, kind) for each, kind in zip(columns, kinds, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, list(COLUMNS))


def streamed(of: Hosting, batches: list[list[Row]]) -> list[tuple[str, dict]]:
    """Return what batches give one after the other, each with a machine that is made anew."""
    stores, out, first = {each: MemoryStore() for each in BUCKETS}, [], 0
    for batch in batches:
        came: dict[int, list] = {each: [] for each in BUCKETS}
        for routed in Router(of.plan, of.topics, BUCKETS)([rows(batch, first=first)]):
            for row in routed.to_pylist():
                came[row[BUCKET]] += unpack(row[PAYLOAD])
        first += len(batch)
        for number, several in came.items():
            paged = PagedStore(stores[number])
            hosted = of.host(paged)
            for records in hosted.take(sorted(several, key=lambda each: each[:5]), clock=CLOCK):
                hosted.machine.flush()
                paged.flush()
                out += [(each.topic, msgspec.json.decode(each.value)) for each in records]
    return out


def finished(of: Hosting, came: list[Row]) -> list[tuple[str, dict]]:
    """Return what all of it gives over a range."""
    routed = list(Router(of.plan, of.topics, BUCKETS, singly=True)([rows(came)]))
    if not routed:
        return []
    whole = pa.Table.from_batches(routed).sort_by(
        [(each, "ascending") for each in (BUCKET, *PLACES)]
    )
    out = BatchMachines(of)(whole.to_batches(max_chunksize=5))
    found = [row for batch in out for row in batch.to_pylist()]
    return [(row["topic"], msgspec.json.decode(row["value"])) for row in found]


def ids(found: list[tuple[str, dict]], topic: str) -> Counter:
    return Counter((row.get("device"), row.get("id")) for at, row in found if at == topic)


came = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from("abcdef"), st.integers(0, 3), st.integers(0, 500)),
    max_size=60,
)


@settings(max_examples=40)
@given(came, st.lists(st.integers(0, 60), max_size=4))
def test_batches_give_what_the_range_gives_however_they_are_cut(given_rows, cuts):
    # A device is in one partition, as its key says.
    records = [
        (ord(device) % 3, device, number, second) for _, device, number, second in given_rows
    ]
    of = hosting()
    edges = [0, *sorted(min(each, len(records)) for each in cuts), len(records)]
    batches = [records[start:end] for start, end in pairwise(edges)]
    together, whole = streamed(of, batches), finished(of, records)
    # All within ten minutes: each key and id once.
    expected = Counter({(device, number): 1 for _, device, number, _ in records})
    assert ids(together, "once") == expected
    assert sorted(map(str, together)) == sorted(map(str, whole))


def test_every_bucket_hears_how_far_each_partition_is_before_its_own_records():
    of = hosting(disorder="0s")
    late = [(0, "a", 1, 0), (0, "b", 2, 5000), (0, "c", 3, 0), (0, "d", 4, 5000)]
    found = streamed(of, [late])
    assert ids(found, "once") == {("a", 1): 1, ("b", 2): 1, ("d", 4): 1}
    (entry,) = [row for topic, row in found if topic == "once.late"]
    assert (entry["offset"], entry["reason"], entry["part"]) == (2, "expired", "once.filling")
    # In a later batch as well, and where the buckets have nothing else to do.
    again = streamed(of, [late[:2], [], late[2:]])
    assert sorted(map(str, again)) == sorted(map(str, found))


def test_a_declaration_travels_without_the_code_of_its_record_types():
    made = hosting()
    assert made.to.record.cls is not Reading
    assert (
        made.to.record.schema
        == plan_of(find_part(application().graph, "once.filling", Pipeline)).inputs[0].record.schema
    )
