"""``penstock explain``: what the parts of an application compute, where, how and why."""

import argparse
from collections.abc import Iterator
from typing import Any

from penstock.cli.application.explainoperator import operator_facts, operator_lines
from penstock.cli.application.explainservice import service_facts, service_lines
from penstock.cli.arguments import add_app, add_json, command
from penstock.cli.session import Session
from penstock.core.drawing.text import describe
from penstock.core.graph.data import Lake
from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import FILLING, Part, Pipeline, Service, Sink, Source
from penstock.core.instants import MICROSECOND
from penstock.core.panes.times import END
from penstock.core.panes.watermark import WatermarkRule
from penstock.core.panes.windows import CountWindows
from penstock.core.rollup.declaration import declaration_of
from penstock.core.rollup.resolve import Rollup
from penstock.core.units import duration_text
from penstock.core.wiring.panes import rollup_of
from penstock.machine.packages import require_spark

__all__ = ["register"]

_WIDTH = 14
_ENGINES = {
    "native": "Spark's own windows",
    "panes": "the pane machine in Spark's state store",
    "services": "the pane machine in the state of a service",
}


def register(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    add_app(parser)
    parser.add_argument(
        "part",
        metavar="PART",
        nargs="?",
        help="a part, or a stream or table that is computed",
    )
    add_json(parser)
    command(parser, _explain)


def _explain(session: Session) -> None:
    graph = session.application.graph
    found = [_explained(graph, part) for part in _chosen(graph, session.arguments.part)]
    terminal = session.terminal
    if session.arguments.json:
        terminal.json({"app": graph.app, "parts": found})
        return
    for index, each in enumerate(found):
        if index:
            terminal.line("")
        for line in _lines(each):
            terminal.line(line)


def _chosen(graph: Graph, name: str | None) -> list[Part]:
    if name is None:
        return list(graph.parts)
    from penstock.core.wiring.lookup import find_parts

    if graph.find(name):
        found = (f"{name}.{ending}" for ending in ("windows", FILLING))
        name = next((filling for filling in found if graph.part(filling)), name)
    return find_parts(graph, [name])


def _explained(graph: Graph, part: Part) -> dict[str, Any]:
    found: dict[str, Any] = {"part": part.name, "is": describe(part)} | _flow(part)
    if isinstance(part, Pipeline | Service) and part.operator is not None:
        found["operator"] = operator_facts(graph, part)
        return found
    if isinstance(part, Pipeline) and not part.aggregation:
        found["looks_up"] = [data.name for data in part.lookups]
        found["delivery"] = part.delivery
    if isinstance(part, Source | Sink):
        found["delivery"] = part.delivery
    if isinstance(part, Service) and not part.aggregation:
        found["service"] = service_facts(graph, part)
    if isinstance(part, Pipeline | Service) and part.aggregation:
        found["is"] = f"windowed aggregation, on {_home(part)}"
        found["windows"] = _windows(graph, part)
    return found


def _flow(part: Part) -> dict[str, list[str]]:
    """Return the names of what a part reads and writes."""
    return {
        "reads": [data.name for data in part.inputs],
        "writes": [data.name for data in part.outputs],
    }


def _home(part: Pipeline | Service) -> str:
    return "services" if isinstance(part, Service) else "Spark"


def _windows(graph: Graph, part: Pipeline | Service) -> dict[str, Any]:
    rollup = rollup_of(part)
    data = part.writes[0] if isinstance(part, Service) else part.writes
    if isinstance(data, Lake):
        raise TypeError(f"{part.name}: panes go to streams and tables")
    way, reasons = _way(part)
    windowing = rollup.windowing
    return {
        "runs_on": _home(part).lower(),
        "way": way,
        "not_native_because": reasons,
        "computes": declaration_of(rollup)
        | {
            "lateness": _span(windowing.lateness),
            "stamp": windowing.stamp,
            "final_pane": windowing.final_pane,
            "on_time_pane": windowing.on_time_pane,
        },
        "watermark": list(_watermark(rollup, part)),
        "panes_to": {"kind": data.kind, "name": data.name, "topic": data.topic.name},
        "late_records_to": graph.late_records.name,
        "key": list(data.record.schema.key),
        "fields": [str(field) for field in data.record.schema.fields],
    }


def _way(part: Pipeline | Service) -> tuple[str, list[str]]:
    """Return what computes it, and why Spark's own windows do not."""
    if isinstance(part, Service):
        return "services", []
    require_spark()
    from penstock.pipelines.rollups.native import why_not_native

    reasons = why_not_native(part)
    return ("panes" if reasons else "native"), reasons


def _watermark(rollup: Rollup, part: Pipeline | Service) -> Iterator[str]:
    """Yield the rule of the watermark in words."""
    rule = rollup.rule
    if rule is None:
        yield "it follows the clock: windows are in processing time"
        return
    if isinstance(rollup.windowing.windows, CountWindows):
        yield "windows of a number of records do not use it"
    else:
        yield from _following(rule, part)
    if rule.ahead is not None:
        text = f"records more than {_span(rule.ahead)} ahead of the clock do not move it"
        yield f"{text} and go to the late ledger"


def _following(rule: WatermarkRule, part: Pipeline | Service) -> Iterator[str]:
    behind = f"{_span(rule.disorder)} behind" if rule.disorder else "at"
    one = sum(data.topic.partitions for data in part.reads if not isinstance(data, Lake)) == 1
    if isinstance(part, Service) and not one:
        yield f"one for each partition, {behind} its newest record"
    elif one or rule.follows == "newest":
        yield f"{behind} the newest record"
    else:
        yield f"{behind} the newest record of the slowest partition"
        span = "for ever" if rule.idle_after is None else f"for {_span(rule.idle_after)}"
        yield f"an idle partition holds it back {span}"
    if rule.closes_after is None:
        yield "while no record comes it stands still, and windows stay open"
    else:
        yield f"if no record has come for {_span(rule.closes_after)}, it follows the clock"


def _span(micros: int) -> str:
    return "for ever" if micros >= END else duration_text(micros * MICROSECOND)


def _lines(found: dict[str, Any]) -> Iterator[str]:
    """Yield one part for people."""
    yield f"{found['part']}  ({found['is']})"
    windows = found.get("windows")
    if operator := found.get("operator"):
        yield from (_line(label, text) for label, text in operator_lines(operator))
    elif windows is None:
        yield from _plain_lines(found)
    else:
        yield from _window_lines(windows)


def _plain_lines(found: dict[str, Any]) -> Iterator[str]:
    flow = [f"{word} {', '.join(found[word])}" for word in ("reads", "writes") if found[word]]
    yield f"  {', '.join(flow) or 'reads and writes nothing'}"
    if looked_up := found.get("looks_up"):
        yield f"  looks up {', '.join(looked_up)}, as it is at each batch"
    if found.get("delivery") == "at_least_once":
        yield "  at least once: after a crash, output may be written again"
    if facts := found.get("service"):
        yield from (_line(label, text) for label, text in service_lines(facts))


def _window_lines(windows: dict[str, Any]) -> Iterator[str]:
    panes = windows["panes_to"]
    yield _line("computed by", _ENGINES[windows["way"]])
    for number, reason in enumerate(windows["not_native_because"]):
        yield _line("" if number else "because", reason)
    for aspect, text in windows["computes"].items():
        if text:
            yield _line(aspect.replace("_", " "), text)
    for number, text in enumerate(windows["watermark"]):
        yield _line("" if number else "watermark", text)
    keyed = f", keyed by {', '.join(windows['key'])}" if windows["key"] else ""
    yield _line("panes to", f"{panes['kind']} {panes['name']}{keyed}")
    yield _line("late to", f"topic {windows['late_records_to']}")
    for number, field in enumerate(windows["fields"]):
        yield _line("" if number else "fields", field)


def _line(label: str, text: str) -> str:
    return f"  {label:<{_WIDTH}}{text}"
