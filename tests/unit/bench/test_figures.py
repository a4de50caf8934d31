"""The pure part of the benchmarks: rates, percentiles, and the table with its verdicts."""

import importlib.util
import sys
from pathlib import Path

import pytest

FILE = Path(__file__).parents[3] / "bench" / "pipelines" / "figures.py"


@pytest.fixture(scope="module")
def figures():
    spec = importlib.util.spec_from_file_location("bench_figures", FILE)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def test_a_marginal_rate_is_that_of_what_the_large_topic_has_more(figures):
    costs = [
        figures.Cost({"small": 2.0, "large": 8.0}, {"small": 3.0, "large": 15.0}),
        figures.Cost({"small": 2.5, "large": 8.5}, {"small": 3.5, "large": 15.5}),
        figures.Cost({"small": 9.0, "large": 8.6}, {"small": 4.0, "large": 16.0}),
    ]
    rate = figures.marginal(costs, {"small": 1_000_000, "large": 4_000_000})
    assert rate.records == pytest.approx(500_000)
    assert rate.cpu_microseconds == pytest.approx(4.0)


def test_percentiles_are_milliseconds_of_the_sorted_latencies(figures):
    taken = [number / 1000 for number in range(1000, 0, -1)]
    assert figures.percentiles(taken) == pytest.approx([501.0, 991.0, 1000.0])
    assert figures.percentiles([0.004]) == pytest.approx([4.0, 4.0, 4.0])


@pytest.mark.parametrize(
    ("got", "at_most", "verdict"),
    [(0.9, False, "yes"), (0.89, False, "no"), (0.9, True, "yes"), (0.91, True, "no")],
)
def test_a_line_says_whether_what_was_asked_was_reached(figures, got, at_most, verdict):
    line = figures.Line("ratio", got, asked=0.9, at_most=at_most)
    assert line.verdict == verdict
    assert str(line).endswith(f" 0.9 | {verdict} |")


def test_a_line_that_nothing_was_asked_of_has_no_verdict(figures):
    assert (
        str(figures.Line("speed", 123456.7, "records/s")) == "| speed | 123,457 records/s |  |  |"
    )


def test_the_table_has_every_benchmark_that_ran_and_no_other(figures):
    results = {
        "flink": {
            work: {
                "penstock": {"records/s": 90.0, "us": 2.0},
                "by hand": {"records/s": 95.0, "us": 1.9},
                "flink": {"records/s": 100.0, "us": 1.0},
            }
            for work in ("window", "stateless")
        },
        "latency": {"real time": {"p50": 1.0, "p99": 20.0, "p99.9": 50.0}},
        "growth": {},
    }
    lines = {line.what: line for line in figures.lines_of(results)}
    assert lines["window, penstock to Flink SQL"].verdict == "yes"
    assert lines["stateless, penstock to Flink SQL by processor time"].got == 0.5
    assert lines["latency, real time, p99"].verdict == "no"
    assert not any("sink" in what for what in lines)
    assert figures.table(list(lines.values())).count("\n") == len(lines) + 1
