"""From what was measured to the figures and the table that are shown: pure, and tested as such."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

__all__ = ["Cost", "Line", "Rate", "lines_of", "marginal", "percentiles", "table"]


class Cost(NamedTuple):
    """What a run over each topic took: of the clock, and of the processor."""

    seconds: dict[str, float]
    cpu_seconds: dict[str, float]


@dataclass(frozen=True)
class Rate:
    """Records per second, and microseconds of processor time for a record."""

    records: float
    cpu_microseconds: float


def marginal(costs: Sequence[Cost], sizes: Mapping[str, int]) -> Rate:
    """Return the rate of what the large topic has more than the small one, from medians."""
    more = sizes["large"] - sizes["small"]

    def longer(figures: list[dict[str, float]]) -> float:
        small, large = (statistics.median(each[size] for each in figures) for size in sizes)
        return large - small

    seconds = longer([cost.seconds for cost in costs])
    cpu = longer([cost.cpu_seconds for cost in costs])
    return Rate(more / seconds, cpu / more * 1e6)


def percentiles(
    taken: Sequence[float], shares: Sequence[float] = (0.5, 0.99, 0.999)
) -> list[float]:
    """Return milliseconds below which these shares of the latencies, in seconds, are."""
    found = sorted(taken)
    return [found[min(len(found) - 1, int(len(found) * share))] * 1e3 for share in shares]


@dataclass(frozen=True)
class Line:
    """One line of the table; ``asked`` is what must be reached at least, or at most."""

    what: str
    got: float
    unit: str = ""
    asked: float | None = None
    at_most: bool = False

    @property
    def verdict(self) -> str:
        """Say whether what was asked was reached; nothing where nothing was asked."""
        if self.asked is None:
            return ""
        reached = self.got <= self.asked if self.at_most else self.got >= self.asked
        return "yes" if reached else "no"

    def __str__(self) -> str:
        """Return the line in Markdown."""
        asked = "" if self.asked is None else f"{'<=' if self.at_most else '>='} {self.asked:g}"
        got = f"{self.got:,.0f}" if self.got >= 100 else f"{self.got:.2f}"
        shown = f"{got} {self.unit}".strip()
        return f"| {self.what} | {shown} | {asked} | {self.verdict} |"


def table(lines: Sequence[Line]) -> str:
    """Return the lines as a Markdown table."""
    return "\n".join(
        ["| what | measured | asked | reached |", "|---|---|---|---|", *map(str, lines)]
    )


def lines_of(results: Mapping[str, Any]) -> list[Line]:
    """Return the table of a run from the figures of its benchmarks; a missing one is left out."""
    makers = {
        "flink": _flink,
        "panes": _panes,
        "sink": _sink,
        "latency": _latency,
        "cluster": _cluster,
        "bigstate": _bigstate,
        "lookups": _lookups,
    }
    return [
        line for name, make in makers.items() if name in results for line in make(results[name])
    ]


def _flink(found: Mapping[str, Any]) -> Iterator[Line]:
    for work, asked in {"window": 0.9, "stateless": 0.5}.items():
        ours, flink = found[work]["penstock"], found[work]["flink"]
        for engine, rate in found[work].items():
            yield Line(f"{work}, {engine}, discarded", rate["records/s"], "records/s")
        ratio = ours["records/s"] / flink["records/s"]
        yield Line(f"{work}, penstock to Flink SQL", ratio, asked=asked)
        yield Line(f"{work}, penstock to Flink SQL by processor time", flink["us"] / ours["us"])


def _panes(found: Mapping[str, float]) -> Iterator[Line]:
    for name, speed in found.items():
        yield Line(f"window into Kafka, {name}", speed, "records/s")
    yield Line(
        "Spark's own windows to hand-written", found["native"] / found["by hand"], asked=0.95
    )
    yield Line("panes to hand-written", found["panes"] / found["by hand"])


def _sink(found: Mapping[str, Mapping[str, float]]) -> Iterator[Line]:
    own, once = found["Spark's own"], found["exactly once"]
    for name, figures in found.items():
        yield Line(f"Kafka sink, {name}", figures["records/s"], "records/s")
        yield Line(f"batch of 100, {name}", figures["ms per small batch"], "ms")
    yield Line("exactly-once sink to Spark's own", once["records/s"] / own["records/s"], asked=0.6)


def _latency(found: Mapping[str, Mapping[str, float]]) -> Iterator[Line]:
    for mode, figures in found.items():
        limits = {"p50": 3.0, "p99": 15.0} if mode == "real time" else {}
        for name, value in figures.items():
            yield Line(f"latency, {mode}, {name}", value, "ms", limits.get(name), at_most=True)


def _cluster(found: Mapping[str, Mapping[str, float]]) -> Iterator[Line]:
    for name, figures in found.items():
        for what, value in figures.items():
            word, _, unit = what.partition(" ") if what != "records/s" else ("speed", "", what)
            yield Line(f"window on {name}: {word}", value, unit)
    ratio = found["standalone"]["records/s"] / found["local"]["records/s"]
    yield Line("standalone with two workers to local", ratio)


def _bigstate(found: Mapping[str, float]) -> Iterator[Line]:
    yield Line("state larger than memory: heap", 512, "MB")
    for what in ("state", "memory"):
        yield Line(f"state larger than memory: {what}", found[f"{what} MB"], "MB")
    yield Line("state larger than memory: speed", found["records/s"], "records/s")
    yield Line("state larger than memory: wrong keys", found["wrong"], asked=0, at_most=True)


def _lookups(found: Mapping[str, Any]) -> Iterator[Line]:
    rows = f"{found['rows']:,} rows"
    yield Line(f"batch without the table of {rows}", found["without"]["median"], "s")
    yield Line(f"batch beside the table of {rows}", found["beside"]["median"], "s")
    yield Line(f"first batch beside the table of {rows}", found["beside"]["first"], "s")
    yield Line("batch beside a table to one without", found["ratio"], asked=1.5, at_most=True)
