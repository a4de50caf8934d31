"""The user's code of one task, with what it asks for given: states and timers by their names."""

import copy
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from penstock.core.graph.changes import Change, Row, rows_state
from penstock.core.graph.data import OnLog
from penstock.core.graph.parts import Service
from penstock.core.graph.rows import Rows, table_for
from penstock.core.graph.signature import Signature, method, read_definition
from penstock.core.graph.state import CallScope, Opening
from penstock.core.graph.timer import Timers
from penstock.core.records.codec import JsonCodec
from penstock.services.state.cells import ValueCells
from penstock.services.state.states import States
from penstock.services.state.wholetables import WholeTables

__all__ = ["Calls", "bind_calls", "make_codecs", "make_subject", "rows_handles", "wanted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """What of the user's code there is to call."""

    process: Callable[..., Any]
    on_timer: Callable[..., Any] | None = None
    open: Callable[[Opening], Any] | None = None
    close: Callable[[], Any] | None = None


def make_subject(service: Service) -> Any:
    """Return the service's code for one task.

    A function is itself; of a class an object is made, an object is copied with all it holds: each
    task has one. TypeError where it holds what cannot be copied.
    """
    subject = service.function
    if inspect.isclass(subject):
        return subject()
    if inspect.isroutine(subject):
        return subject
    try:
        return copy.deepcopy(subject)
    except Exception as error:
        raise TypeError(
            f"{type(subject).__name__} cannot be copied for each partition ({error}): give the "
            "class itself, and make in open() what cannot be copied"
        ) from error


def rows_handles(service: Service, tables: WholeTables) -> dict[str, Rows[Any]]:
    """Return what the user's code gets for broadcast tables, by the names of the parameters."""
    found: dict[str, Rows[Any]] = {}
    for name, kind in service.rows:
        table = table_for(name, kind, service.broadcasts)
        if table is None or table.topic.name not in tables:
            raise TypeError(f"{service.name}: there are no rows for {name!r}")
        found[name] = Rows(tables[table.topic.name], table.record.schema)
    return found


class ChangeCodec:
    """Accepts the records of a table whose changes a service asks for, deletions among them."""

    def __init__(self, table: OnLog) -> None:
        codec: JsonCodec[Any] = JsonCodec(table.record, max_bytes=table.topic.max_record_bytes)
        state, accept = rows_state(table.name), codec.accept

        def accept_row(key: bytes | None, value: bytes | None) -> Row:
            """Return the row; DataError where it does not decode, or is no row's deletion."""
            if value is None and key is not None:
                return Row(state, None)
            return Row(state, accept(key, value))

        self.accept = accept_row


def make_codecs(service: Service) -> dict[str, JsonCodec[Any] | ChangeCodec]:
    """Return what accepts the records of each topic."""
    answers = [each.answers for each in service.asks]  # they lie under the key of whoever asked
    return {
        data.topic.name: ChangeCodec(data)
        if data.topic.name in service.changes
        else JsonCodec(
            data.record, max_bytes=data.topic.max_record_bytes, keyed=data not in answers
        )
        for data in service.reads
    }


def telling(process: Callable[..., Any], states: States, here: CallScope) -> Callable[..., Any]:
    """Return a function that is told what was before, and keeps what is now.

    It is not told of the deletion of a row that it has not handled.
    """

    def tell(record: Any, **context: Any) -> Any:
        if type(record) is not Row:
            return process(record, **context)
        cells = states.named(record.state)
        if not isinstance(cells, ValueCells):
            raise TypeError(f"there are no {record.state}")
        before, now = cells.read(here.key), record.now
        if now is not None:
            cells.write(here, now)
        elif before is None:
            return None
        else:
            cells.remove(here)
        return process(Change(here.key.decode(), before, now), **context)

    return tell


def bind_calls(subject: Any, states: States, here: CallScope) -> Calls:
    """Return what to call of the user's code, with states and timers that point to ``here``."""
    process, on_timer = method(subject), method(subject, "on_timer")
    if process is None:
        raise TypeError(f"{subject!r} has no method process")
    definition = read_definition(subject)
    given, timers = states.handles(here), states.timers_handle(here)
    handle = _bound(process, wanted(definition.process, given, timers))
    return Calls(
        process=telling(handle, states, here) if definition.process.changes else handle,
        on_timer=_bound(on_timer, wanted(definition.on_timer, given, timers))
        if on_timer is not None and definition.on_timer is not None
        else None,
        open=method(subject, "open"),
        close=method(subject, "close"),
    )


def wanted(signature: Signature, given: Mapping[str, Any], timers: Timers | None) -> dict[str, Any]:
    """Return the states and timers that a method asks for, by its names for them."""
    wanted = {spec.name: given[spec.name] for spec in signature.states}
    wanted |= {name: given[name] for name, _ in signature.rows}
    if signature.timers:
        wanted[signature.timers] = timers
    return wanted


def _bound(function: Callable[..., Any], given: Mapping[str, Any]) -> Callable[..., Any]:
    """Return the function with these given, so that a call names the rest only.

    Positions are used where the function allows: they cost a fifth of what names do.
    """
    if not given:
        return function
    parameters = list(inspect.signature(function).parameters.values())[1:]
    if {parameter.name for parameter in parameters} == set(given) and all(
        parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD for parameter in parameters
    ):
        first, *others = (given[parameter.name] for parameter in parameters)
        if not others:
            return lambda record: function(record, first)
        if len(others) == 1:
            (second,) = others
            return lambda record: function(record, first, second)
        return lambda record: function(record, first, *others)
    return partial(function, **given)
