"""``penstock explain`` for an operator: what it computes, and which state it holds for how long."""

from collections.abc import Iterator
from typing import Any

from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Pipeline, Service
from penstock.core.wiring.operators import plan_of, written_by

__all__ = ["operator_facts", "operator_lines"]


def operator_facts(graph: Graph, part: Pipeline | Service) -> dict[str, Any]:
    """Return what an operator declares, for ``--json`` and for :func:`operator_lines`."""
    plan, data = plan_of(part), written_by(part)
    kept = isinstance(part, Service) and part.keeps_state
    return {
        "kind": "" if part.operator is None else part.operator.kind,
        "runs_on": "services" if isinstance(part, Service) else "spark",
        "inputs": [{"name": each.name, "read_as": each.kind} for each in plan.inputs],
        "computes": dict(plan.declaration()),
        "holds": list(plan.holds()),
        "changelog": graph.changelog(part).name if kept and isinstance(part, Service) else None,
        "results_to": {"kind": data.kind, "name": data.name, "topic": data.topic.name},
        "late_records_to": graph.late_records.name if part.has_late_records else None,
        "key": list(data.record.schema.key),
        "fields": [str(field) for field in data.record.schema.fields],
    }


def operator_lines(facts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the facts for people, each with its label."""
    for number, each in enumerate(facts["inputs"]):
        yield "" if number else "reads", f"{each['read_as']} {each['name']}"
    for aspect, text in facts["computes"].items():
        if text:
            yield aspect.replace("_", " "), text
    for number, text in enumerate(facts["holds"] or ["nothing"]):
        yield "" if number else "holds", text
    if facts["changelog"]:
        yield "changelog", f"topic {facts['changelog']}"
    to = facts["results_to"]
    keyed = f", keyed by {', '.join(facts['key'])}" if facts["key"] else ""
    yield "results to", f"{to['kind']} {to['name']}{keyed}"
    if facts["late_records_to"]:
        yield "late to", f"topic {facts['late_records_to']}"
    for number, field in enumerate(facts["fields"]):
        yield "" if number else "fields", field
