import re
from datetime import UTC, datetime

import msgspec
from prometheus_client.parser import text_string_to_metric_families

from penstock.core.printable import printable
from penstock.core.status.exposition import nested, prometheus_text, series
from penstock.core.status.health import health
from penstock.core.status.histogram import Histogram
from penstock.core.status.report import Counts
from penstock.core.status.status import PartStatus, RunStatus, decode_status, encode_status
from penstock.services.worker.measures import Measures


def part(state="running", *, process="0", **given):
    return PartStatus(
        process=process, part="count", kind="service", state=state, since_seconds=1.0, **given
    )


def run(*parts):
    at = datetime(2026, 1, 1, tzinfo=UTC)
    return RunStatus(app="plant", command="run", pid=1, started_at=at, parts=parts)


def test_the_conservation_law_is_in_the_metrics():
    counts = Counts(received=10, passed=5, filtered=2, dead_lettered=1, in_flight=2, written=7)
    lines = prometheus_text(run(part(counts=counts, lag=3, restarts=2))).splitlines()
    labels = '{app="plant",part="count",process="0"}'
    for name, value in {
        "received_records_total": 10,
        "passed_records_total": 5,
        "filtered_records_total": 2,
        "dead_lettered_records_total": 1,
        "in_flight_records": 2,
        "written_records_total": 7,
        "lag_records": 3,
        "up": 1,
        "process_restarts_total": 2,
    }.items():
        assert f"penstock_{name}{labels} {value}" in lines
    assert "# TYPE penstock_received_records_total counter" in lines
    assert "# TYPE penstock_lag_records gauge" in lines


def test_every_process_has_its_own_series_and_a_family_is_named_once():
    text = prometheus_text(run(part(process="count-1"), part("degraded", process="count-2")))
    assert 'penstock_up{app="plant",part="count",process="count-1"} 1' in text
    assert 'penstock_up{app="plant",part="count",process="count-2"} 0' in text
    assert text.count("# TYPE penstock_up gauge") == 1


def test_durations_are_histograms():
    measures = Measures()
    for seconds in (0.0005, 0.02, 0.02, 99.0):
        measures.commit.see(seconds)
    text = prometheus_text(run(part(metrics=measures.series())))
    labels = 'app="plant",part="count",process="0"'
    assert "# TYPE penstock_commit_seconds histogram" in text
    assert f'penstock_commit_seconds_bucket{{{labels},le="0.001"}} 1\n' in text
    assert f'penstock_commit_seconds_bucket{{{labels},le="0.025"}} 3\n' in text
    assert f'penstock_commit_seconds_bucket{{{labels},le="+Inf"}} 4\n' in text
    assert f"penstock_commit_seconds_count{{{labels}}} 4\n" in text
    assert "# TYPE penstock_restarts_total counter" in text


def test_numbers_keep_all_their_digits():
    counts = Counts(received=123_456_789, passed=123_456_789)
    text = prometheus_text(run(part(counts=counts, metrics={"x_seconds": 1767225670.25})))
    assert 'received_records_total{app="plant",part="count",process="0"} 123456789\n' in text
    assert 'penstock_x_seconds{app="plant",part="count",process="0"} 1767225670.25\n' in text


LABEL = r'[a-z_]+="(?:[^"\\\n]|\\[\\"n])*"'
SAMPLE = rf"[a-z_]+\{{{LABEL}(?:,{LABEL})*\}} (?:[-+.e0-9]+|[+-]?Inf|NaN)"
LINE = re.compile(rf"# HELP [a-z_]+ .+|# TYPE [a-z_]+ (?:counter|gauge|histogram)|{SAMPLE}")


def test_the_text_keeps_the_rules_of_its_format():
    odd = {series("panes_total", kind='a "quoted" \\ line\nand another'): 1.5}
    metrics = odd | Measures().series()
    text = prometheus_text(run(*(part(process=name, metrics=metrics) for name in ("1", 'w "2"'))))
    assert text.endswith("\n")
    lines = text.splitlines()
    assert [line for line in lines if LINE.fullmatch(line) is None] == []
    samples = [line.rpartition(" ")[0] for line in lines if not line.startswith("#")]
    assert len(samples) == len(set(samples))
    heads = [line for line in lines if line.startswith("#")]
    assert len(heads) == len(set(heads))
    described = [line.split()[2] for line in heads if line.startswith("# HELP")]
    assert described == [line.split()[2] for line in heads if line.startswith("# TYPE")]
    # All lines of a family stand together, below its heads.
    family, closed = "", set()
    for line in lines:
        name = line.split()[2] if line.startswith("#") else ""
        if name and name != family:
            assert name not in closed
            closed.add(family)
            family = name
        assert name or line.startswith(family)


def test_a_reader_of_prometheus_reads_what_was_written():
    kind = 'a "quoted" \\ line\nand another'
    measures = Measures()
    measures.commit.see(0.02)
    counts = Counts(received=123_456_789, passed=123_456_789)
    metrics = measures.series() | {series("panes_total", kind=kind): 1.5}
    text = prometheus_text(run(part(counts=counts, metrics=metrics, process='w "2"')))
    families = {family.name: family for family in text_string_to_metric_families(text)}
    received = families["penstock_received_records"]
    assert (received.type, received.samples[0].value) == ("counter", 123_456_789)
    labels = {"app": "plant", "part": "count", "process": 'w "2"'}
    assert received.samples[0].labels == labels
    (pane,) = families["penstock_panes"].samples
    assert pane.labels == labels | {"kind": printable(kind)}
    assert families["penstock_up"].type == "gauge"
    commit = families["penstock_commit_seconds"]
    assert commit.type == "histogram"
    assert {sample.name for sample in commit.samples} == {
        f"penstock_commit_seconds_{end}" for end in ("bucket", "sum", "count")
    }


def test_metrics_for_json_are_nested_by_their_labels():
    odd = 'a "b", c="d"'
    metrics = {series("x", one=odd, two="2"): 1.0, series("x", one=odd, two="3"): 2.0, "y": 3}
    assert nested(metrics) == {"x": {odd: {"2": 1.0, "3": 2.0}}, "y": 3}


def test_a_bound_belongs_to_its_bucket():
    histogram = Histogram()
    histogram.see(0.001)
    assert dict(histogram.series("x"))['x_bucket{le="0.001"}'] == 1


def test_health_is_good_only_where_everything_runs():
    assert run(part(), part("ended")).healthy
    assert not run().healthy
    assert not run(part("starting")).healthy
    troubled = run(part(), part("degraded", process="1", reason="Kafka is away"))
    assert not troubled.healthy
    told = msgspec.json.decode(health(troubled))
    assert told["healthy"] is False
    assert [part["reason"] for part in told["parts"]] == ["", "Kafka is away"]


def test_a_status_that_was_written_is_read_as_it_was():
    status = run(part(lag=3, detail={"batch": "1"}, metrics={series("x", kind="y"): 1.5}))
    assert decode_status(encode_status(status)) == status


def test_health_says_how_far_a_restore_has_come():
    told = health(run(part("starting", detail={"restoring": "0: 45%"})))
    assert msgspec.json.decode(told)["parts"][0]["reason"] == "restoring 0: 45%"


def test_a_batch_counts_as_often_as_it_has_records():
    histogram = Histogram()
    histogram.see(0.02, times=50)
    found = dict(histogram.series("process_seconds"))
    assert found["process_seconds_count"] == 50
    assert found["process_seconds_sum"] == 1.0
    assert found['process_seconds_bucket{le="0.01"}'] == 0
