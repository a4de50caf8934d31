"""Operators as parts of an application: what each computes, where it writes, whence it reads."""

from collections.abc import Mapping

from penstock.core.graph.data import Data, Lake, OnLog, Stream
from penstock.core.graph.parts import Pipeline, Service
from penstock.core.operators.operator import Plan
from penstock.errors import DefinitionError

__all__ = ["input_numbers", "is_repartitioned", "plan_of", "written_by"]


def plan_of(part: Pipeline | Service) -> Plan:
    """Return the operator of a part, ready to run; DefinitionError where it has none."""
    if part.plan is None:
        raise DefinitionError(())
    return part.plan


def input_numbers(plan: Plan) -> Mapping[str, tuple[int, ...]]:
    """Return, by topic, the numbers of the inputs that its records are for.

    A stream that is joined with itself is read once, and each record is for both inputs.
    """
    found: dict[str, tuple[int, ...]] = {}
    for number, each in enumerate(plan.inputs):
        if each.kind != "broadcast":
            found[each.topic] = (*found.get(each.topic, ()), number)
    return found


def written_by(part: Pipeline | Service) -> OnLog:
    """Return the stream or table that takes the results of a part."""
    data: Data = part.outputs[0]
    if isinstance(data, Lake):
        raise TypeError(f"{part.name}: results go to streams and tables")
    return data


def is_repartitioned(data: Data) -> bool:
    """Return whether a stream's records carry the event times of other partitions."""
    return isinstance(data, Stream) and bool(data.sources)
