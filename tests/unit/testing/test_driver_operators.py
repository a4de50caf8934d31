"""Operators as services, in the driver: selections, merges, repartitioned and flattened streams."""

from datetime import UTC, datetime, timedelta

import pytest

from penstock import App, EventTime, merge, record
from penstock.core.graph.data import Stream
from penstock.core.operators.inputs import input_of
from penstock.core.operators.operator import Inner
from penstock.core.rules.check import check
from penstock.errors import ConfigurationError
from penstock.testing import Driver

T0 = datetime(2026, 1, 1, tzinfo=UTC)


@record(key="device", time="at")
class Reading:
    device: str
    at: datetime
    celsius: float
    tags: list[str] = []  # noqa: RUF012 - msgspec copies it
    site: str = "north"


@record(key="device")
class Limit:
    device: str
    celsius: float


def reading(device="a", minute=0, celsius=20.0, tags=(), site="north"):
    return Reading(device, T0 + timedelta(minutes=minute), celsius, list(tags), site)


@pytest.fixture
def app():
    return App("plant")


@pytest.fixture
def readings(app):
    return app.stream("readings", Reading, event_time=EventTime(disorder="5m"))


def codes(app):
    return [problem.code for problem in check(app.graph)]


def test_a_condition_alone_passes_records_on_as_they_are(app, readings):
    warm = app.stream("warm", readings.where("celsius > 0"), on="services")
    driver = Driver(app)
    driver.pipe(readings, reading(celsius=1.0), reading(celsius=-1.0), reading("b"))
    assert driver.read(warm) == [reading(celsius=1.0), reading("b")]
    counts = driver.counts(app.graph.part("warm.filling"))
    assert (counts.received, counts.passed, counts.filtered) == (3, 2, 1)


def test_selected_fields_keep_the_key_and_the_event_time_where_they_are_among_them(app, readings):
    renamed = readings.select(sensor="device", happened="at", kelvin="celsius + 273.15")
    kelvin = app.stream("kelvin", renamed, on="services")
    plain = app.stream("plain", readings.select(kelvin="celsius + 273.15"), on="services")
    schema = kelvin.record.schema
    assert (schema.key, schema.time) == (("sensor",), "happened")
    assert kelvin.event_time.disorder == timedelta(minutes=5)
    assert (plain.record.schema.key, plain.topic.partitioning) == ((), "round_robin")
    driver = Driver(app)
    driver.pipe(readings, reading(celsius=0.0))
    assert driver.read(kelvin) == [kelvin.record.cls(sensor="a", happened=T0, kelvin=273.15)]


def test_branches_share_out_all_records_each_to_one_of_them(app, readings):
    hot, cold, rest = readings.branch("celsius > 60", "celsius < 0")
    streams = [
        app.stream(name, each, on="services")
        for name, each in {"hot": hot, "cold": cold, "rest": rest}.items()
    ]
    driver = Driver(app)
    driver.pipe(readings, *[reading(celsius=each) for each in (70.0, -1.0, 5.0, 61.0)])
    assert [[each.celsius for each in driver.read(stream)] for stream in streams] == [
        [70.0, 61.0],
        [-1.0],
        [5.0],
    ]


def test_a_list_is_flattened_into_a_record_for_each_item(app, readings):
    tags = readings.flatten("tags").where("tags <> 'x'").select(device="device", tag="tags")
    tags = app.stream("tags", tags, on="services")
    driver = Driver(app)
    driver.pipe(readings, reading(tags=["x", "y", "z"]), reading("b"))
    assert [(each.device, each.tag) for each in driver.read(tags)] == [("a", "y"), ("a", "z")]


def test_merged_streams_need_the_same_fields(app, readings):
    more = app.stream("more", Reading, partitions=3)
    limits = app.stream("limits", Limit)
    both = app.stream("both", merge(readings, more.where("celsius > 0")), on="services")
    driver = Driver(app)
    driver.pipe(readings, reading())
    driver.pipe(more, reading("b"), reading("c", celsius=-1.0))
    assert sorted(each.device for each in driver.read(both)) == ["a", "b"]
    app.stream("wrong", merge(readings, limits), on="services")
    app.stream("twice", merge(readings, readings.where("celsius > 0")), on="services")
    assert {"merge.types", "merge.twice"} <= set(codes(app))


def test_repartitioned_records_go_to_the_partition_of_their_new_key(app, readings):
    by_site = app.stream("by_site", readings.repartition(by="site"), on="services", partitions=8)
    driver = Driver(app)
    driver.pipe(readings, *[reading(str(n), site="xyz"[n % 3]) for n in range(30)])
    found = driver.read_raw(by_site)
    assert len(found) == 30
    assert len({(raw.key(), raw.partition()) for raw in found}) == 3
    assert by_site.record.schema.key == ("site",)


def test_duplicates_are_left_out_over_a_crash_and_late_ones_are_in_the_ledger(app, readings):
    once = app.stream("once", readings.deduplicate(by="celsius", within="1h"), on="services")
    driver = Driver(app, auto_commit=False)
    driver.pipe(readings, reading(), reading(minute=1))
    driver.commit()
    driver.pipe(readings, reading(minute=2), reading(minute=80))
    driver.crash()
    driver.restart()
    driver.pipe(readings, reading(minute=300), reading(minute=3))
    driver.commit()
    assert [each.at - T0 for each in driver.read(once)] == [
        timedelta(minutes=0),
        timedelta(minutes=80),
        timedelta(minutes=300),
    ]
    (late,) = driver.late_records()
    assert (late.part, late.reason, late.group) == ("once.filling", "expired", '["a"]')
    part = app.graph.part("once.filling")
    counts = driver.counts(part)
    assert counts.received == counts.passed + counts.filtered
    assert driver.facts(part)["late records"] == 1


def test_what_does_not_decode_is_a_dead_letter(app, readings):
    once = app.stream("once", readings.deduplicate(by="celsius", within="1h"), on="services")
    driver = Driver(app)
    driver.pipe_raw(readings, b"a", b"{}")
    driver.pipe(readings, reading())
    assert len(driver.read(once)) == 1
    assert [letter.code for letter in driver.dead_letters()] == ["data.missing-field"]
    assert driver.counts(app.graph.part("once.filling")).dead_lettered == 1


def test_a_result_that_its_stream_does_not_take_is_a_dead_letter(app, readings):
    app.stream("small", readings.where("celsius > 0"), on="services", max_record="200B")
    driver = Driver(app)
    driver.pipe(readings, reading(tags=["x" * 200]))
    assert [letter.code for letter in driver.dead_letters()] == ["data.too-large"]


def test_a_changed_operator_refuses_the_state_of_the_old_one(app, readings):
    app.stream("once", readings.deduplicate(by="celsius", within="1h"), on="services")
    driver = Driver(app)
    driver.pipe(readings, reading())
    changed = App("plant")
    again = changed.stream("readings", Reading, event_time=EventTime(disorder="5m"))
    changed.stream("once", again.deduplicate(by="site", within="1h"), on="services")
    driver.stop()
    engine = driver._engine
    engine._graph = changed.graph
    engine._services = {part.name: part for part in changed.graph.parts}
    with pytest.raises(ConfigurationError, match="deduplication was changed") as caught:
        driver.restart()
    assert caught.value.code == "operator.changed"


def test_a_table_of_rows_that_are_selected_is_left_by_rows_that_are_not(app):
    limits = app.table("limits", Limit)
    high = app.table("high", _selection(limits), on="services")
    driver = Driver(app)
    driver.pipe(limits, Limit("a", 90.0), Limit("b", 10.0), Limit("c", 95.0))
    assert set(driver.table(high)) == {"a", "c"}
    driver.pipe(limits, Limit("a", 5.0))
    driver.delete(limits, "c")
    assert driver.table(high) == {}


def _selection(table):
    from penstock.core.rollup.aggregation import Selection

    return Selection(table).where("celsius > 60")


def test_what_is_wrong_with_an_operator_is_said_with_its_place_and_a_way_out(app, readings):
    app.stream("a", readings.where("celsiu > 0"), on="services")
    app.stream("b", readings.deduplicate(by="celsius", within="soon"), on="services")
    app.stream("c", readings.repartition(by="sight"), on="services")
    app.stream("d", readings.flatten("site"), on="services")
    app.stream("f", readings.where(5), on="services")
    app.table("g", readings.select(celsius="celsius"), on="services")
    keyless = app.stream("keyless", readings.select(celsius="celsius"), on="services")
    app.stream("e", keyless.deduplicate(by="celsius", within="1h"), on="services")
    problems = check(app.graph)
    assert [problem.code for problem in problems] == [
        "expression.unknown-field",
        "deduplicate.within",
        "repartition.by",
        "flatten.field",
        "expression.text",
        "table.no-key",
        "operator.no-key",
    ]
    assert all(problem.place and problem.hint for problem in problems[1:])
    assert "did you mean 'site'" in problems[2].hint
    assert "repartition(by=" in problems[6].hint


@pytest.mark.parametrize("partitions", [1, 4])
@pytest.mark.parametrize("fields", [{"site": "site"}, {"device": "site", "site": "site"}])
def test_records_selected_without_their_key_are_not_deduplicated_before_they_have_another(
    app, fields, partitions
):
    readings = app.stream("readings", Reading, partitions=partitions)
    sites = readings.select(**fields, at="at")
    app.stream("refused", sites.deduplicate(by="site", within="1h"), on="services")
    (problem,) = check(app.graph)
    assert (problem.code, problem.place is not None) == ("operator.no-key", True)
    assert "'device'" in problem.message
    assert '.repartition(by="site")' in problem.hint


def test_records_are_deduplicated_under_the_key_that_was_selected_for_them(app, readings):
    sites = readings.select(site="site", at="at")
    by_site = app.stream("by_site", sites.repartition(by="site"), on="services")
    once = app.stream("once", by_site.deduplicate(by="site", within="1h"), on="services")
    renamed = readings.select(machine="device", site="site", at="at")
    each = app.stream("each", renamed.deduplicate(by="site", within="1h"), on="services")
    driver = Driver(app)
    driver.pipe(readings, *(reading(device) for device in "abcdefgh"), reading("a", 1))
    assert [found.site for found in driver.read(once)] == ["north"]
    assert sorted(found.machine for found in driver.read(each)) == list("abcdefgh")


class Outer:
    """An operator that reads another one: what an engine sees of a join on another field."""

    kind = "test"
    place = None

    def __init__(self, *reads):
        self.reads = reads

    def reading(self, data):
        return Outer(*data)

    def plan(self):
        data = self.reads[0]
        assert isinstance(data, Stream)
        return data.deduplicate(by="celsius", within="1h").plan()


def test_an_operator_inside_of_another_has_a_topic_and_a_part_of_its_own(app, readings):
    once = app.stream(
        "once", Outer(Inner("by_site", readings.repartition(by="site"))), on="services"
    )
    assert check(app.graph) == []
    inner = app.graph.find("once.by_site")
    assert isinstance(inner, Stream)
    assert (inner.record.schema.key, inner.sources) == (("site",), ("0", "1"))
    assert input_of(inner).sources == ("0", "1")
    assert inner.event_time == readings.event_time
    driver = Driver(app)
    driver.pipe(readings, reading("a"), reading("b", minute=1), reading("c", minute=2))
    assert len(driver.read(once)) == 1


def test_marks_tell_every_partition_how_far_event_time_is_in_each_source(app, readings):
    app.stream("once", Outer(Inner("by_site", readings.repartition(by="site"))), on="services")
    driver = Driver(app)
    devices = ["a", "b", "c", "d", "e", "f"]
    driver.pipe(readings, *[reading(each, minute=60) for each in devices])
    part = app.graph.part("once.filling")
    # All records are in one partition; its sources have both come to an hour.
    assert driver.event_times(part).watermark == (T0 + timedelta(minutes=55)).timestamp()
    driver.crash()
    driver.restart()
    driver.pipe(readings, *[reading(each, minute=90) for each in devices])
    assert driver.event_times(part).watermark == (T0 + timedelta(minutes=85)).timestamp()
    counts = driver.counts(part)
    assert counts.received == counts.passed + counts.filtered
