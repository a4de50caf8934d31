"""How an application's keys and states are named over HTTP, and how values of states are read."""

from datetime import timedelta
from typing import Any

import msgspec

from penstock.client.answers import AtLeast, Sent, offsets_text
from penstock.core.graph.data import Table
from penstock.core.graph.parts import Service
from penstock.core.graph.state import StateSpec
from penstock.core.options import span_of
from penstock.core.records.codec import key_encoder
from penstock.core.records.rowkey import row_of
from penstock.core.records.schema import Schema
from penstock.errors import DataError

__all__ = ["freshness", "key_text", "range_query", "read_value", "state_of"]


def key_text(schema: Schema, key: Any) -> str:
    """Return a key as its text on the log: a text as it is, other values as their fields say.

    TypeError where it is not what the key fields hold.
    """
    encode = key_encoder(schema)
    if isinstance(key, str) or encode is None:
        return str(key)
    return encode(row_of(schema, key)).decode()


def state_of(service: Service, name: str | None) -> StateSpec:
    """Return a state of a service, its only one where no name is given; else ValueError."""
    states = {state.name: state for state in service.states}
    if name is None and len(states) == 1:
        return next(iter(states.values()))
    if name is None or name not in states:
        known = ", ".join(states) or "none"
        raise ValueError(f"state={name!r}: the states of {service.name} are {known}")
    return states[name]


def read_value(spec: StateSpec, raw: bytes) -> Any:
    """Return a value of a state as its annotation says: a value, a list, or a dict."""
    kind: Any = spec.type
    try:
        if spec.kind == "list":
            return msgspec.json.decode(raw, type=list[kind])
        if spec.kind == "map":
            names: Any = spec.key
            if raw.startswith(b"["):  # the names of its entries cannot be names in JSON
                return dict(msgspec.json.decode(raw, type=list[tuple[names, kind]]))
            return msgspec.json.decode(raw, type=dict[names, kind])
        return msgspec.json.decode(raw, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(
            f"the value is not of the state {spec.name!r}: {error}",
            code="client.value",
            hint="does the gateway run the same version of the application?",
        ) from error


def freshness(
    shown: Table[Any] | Service,
    *,
    at_least: AtLeast,
    max_stale: str | timedelta | None,
    wait: str | timedelta | None,
) -> dict[str, str]:
    """Return how fresh an answer has to be, as a query; ValueError: of a topic it does not read."""
    places = [at_least] if isinstance(at_least, Sent) else list(at_least)
    of = [shown] if isinstance(shown, Table) else shown.reads
    topics = {data.topic.name for data in of}
    for place in places:
        if place.topic not in topics:
            known = ", ".join(sorted(topics))
            raise ValueError(f"{shown.name} has positions of {known}, not of {place.topic}")
    found = {"at_least": offsets_text(places)} if places else {}
    for name, span in (("max_stale", max_stale), ("wait", wait)):
        if span is not None:
            found[name] = f"{span_of(span) // timedelta(milliseconds=1)}ms"
    return found


def range_query(
    *, prefix: str | None, start: str | None, end: str | None, page: int | None
) -> dict[str, str]:
    """Return which keys are asked for, as a query."""
    limit = None if page is None else str(page)
    asked = {"prefix": prefix, "from": start, "to": end, "limit": limit}
    return {name: value for name, value in asked.items() if value is not None}
