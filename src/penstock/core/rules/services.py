"""What must hold for a service before it runs: its parameters, what it gives, its keys."""

import inspect
from collections.abc import Iterator
from datetime import timedelta
from itertools import combinations
from typing import Any, get_args, get_origin

import msgspec

from penstock.core.graph.actor import read_actor
from penstock.core.graph.data import Table
from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Actor, Delivery, Service
from penstock.core.graph.questions import unanswered
from penstock.core.graph.rows import table_for
from penstock.core.graph.signature import Definition, Signature, method, read_definition
from penstock.core.graph.state import StateSpec
from penstock.core.graph.timer import Timer
from penstock.core.hints import did_you_mean
from penstock.core.options import UnreadableSpan
from penstock.core.records.record import record_type
from penstock.errors import Problem

__all__ = ["service_problems"]

_SEVERAL = 2


def service_problems(graph: Graph) -> Iterator[Problem]:
    """Yield every problem of every service."""
    for part in graph.parts:
        if not isinstance(part, Service) or part.declared:
            continue
        if isinstance(part, Actor):
            yield from _actor(part)
            continue
        if method(part.function) is None:
            text = f"{part.kind} {part.name!r} has no method process"
            hint = "write def process(self, record: ..., ...) -> ..."
            yield Problem("service.process", text, hint, part.place)
            continue
        yield from _defined(part, read_definition(part.function))


def _actor(part: Actor) -> Iterator[Problem]:
    """What must hold for actors: what their class alone can say, and what holds for services."""
    found = read_actor(part.function)
    for wrong, right in found.problems:
        yield Problem("actor.class", f"actor {part.name!r} {wrong}", right, part.place)
    if found.receivers:
        yield from _defined(part, found.definition)


def _defined(part: Service, definition: Definition) -> Iterator[Problem]:
    if unreadable := _unreadable(definition):
        text = f"{part.kind} {part.name!r}: its annotations cannot be read: {unreadable}"
        yield Problem("service.annotation", text, "import or define the names they use", part.place)
        return
    yield from _made(part)
    yield from _promises(part)
    yield from _rest(part)
    yield from _takes(part, definition.process)
    yield from _timers(part, definition)
    yield from _gives(part, definition)
    yield from _states(part)
    yield from _talk(part, definition)


def _unreadable(definition: Definition) -> str:
    on_timer = definition.on_timer.unreadable if definition.on_timer else ""
    return definition.process.unreadable or on_timer


def _made(service: Service) -> Iterator[Problem]:
    """A class must be makeable without arguments: every partition has an object of its own."""
    if not inspect.isclass(service.function):
        return
    try:
        inspect.signature(service.function).bind()
    except (TypeError, ValueError) as error:
        text = f"{service.kind} {service.name!r} cannot be created without arguments: {error}"
        name = service.function.__name__
        hint = f"declare an object instead of the class: app.service(...)({name}(...))"
        yield Problem("service.arguments", text, hint, service.place)


def _promises(service: Service) -> Iterator[Problem]:
    if service.delivery not in get_args(Delivery):
        text = f"{service.kind} {service.name!r}: there is no delivery {service.delivery!r}"
        hint = did_you_mean(service.delivery, get_args(Delivery))
        yield Problem("service.delivery", text, hint, service.place)
    if service.concurrency < 1 or service.timeout <= timedelta():
        text = f"{service.kind} {service.name!r} allows no call: {service.concurrency} at a time, "
        hint = "give it a concurrency of 1 or more and some timeout"
        yield Problem("service.concurrency", f"{text}{service.timeout} each", hint, service.place)
    for wrong in service.errors.problems():
        text = f"{service.kind} {service.name!r}: errors: {wrong}"
        hint = 'on_error(decode="dead_letter", process=retry(5), produce="stop"), for example'
        yield Problem("service.errors", text, hint, service.place)


def _rest(service: Service) -> Iterator[Problem]:
    """The methods that are not read for what they take: ``open`` and ``close``."""
    if isinstance(service, Actor):
        return
    for name, arguments, right in (
        ("open", (None,), "def open(self, opening: Opening) -> None"),
        ("close", (), "def close(self) -> None"),
    ):
        found = method(service.function, name)
        if found is None:
            continue
        of_self = (None,) if inspect.isclass(service.function) else ()
        try:
            inspect.signature(found).bind(*of_self, *arguments)
        except (TypeError, ValueError) as error:
            text = f"{service.kind} {service.name!r}: {name} cannot be called: {error}"
            yield Problem("service.method", text, f"write it as {right}", service.place)


def _takes(service: Service, signature: Signature) -> Iterator[Problem]:
    if not signature.takes:
        text = f"{service.kind} {service.name!r} has no annotation for the record it takes"
        wanted = " | ".join(data.record.name for data in service.reads) or "its record type"
        hint = f"annotate its first parameter with {wanted}"
        yield Problem("service.takes", text, hint, service.place)
        return
    for data in service.reads:
        if data.record.cls not in signature.takes and Any not in signature.takes:
            text = (
                f"{service.kind} {service.name!r} takes {_types(signature.takes)}, but "
                f"{data.kind} {data.name!r} holds {data.record.name}"
            )
            every = dict.fromkeys(each.record.name for each in service.reads)
            hint = f"annotate the parameter with {' | '.join(every)}, or read another stream"
            yield Problem("service.takes", text, hint, service.place)
    yield from _unknown(service, signature, other="Context")
    yield from _rows(service)
    for kind in signature.changes:
        of_kind = [data for data in service.reads if data.record.cls is kind]
        name = getattr(kind, "__name__", str(kind))
        text = f"{service.kind} {service.name!r} asks for changes of {name}"
        if isinstance(service, Actor):
            hint = "an actor receives records: let a service be told, and write messages"
            yield Problem("service.changes", f"{text}: an actor cannot", hint, service.place)
        elif not any(isinstance(data, Table) for data in of_kind):
            hint = "records of a stream replace nothing: read a table, or take the record itself"
            yield Problem(
                "service.changes", f"{text} and reads no table of it", hint, service.place
            )


def _rows(service: Service) -> Iterator[Problem]:
    """Each parameter for rows needs a table that is read whole, and each such table a parameter."""
    given: tuple[Any, ...] = service.broadcasts
    if given and not service.reads:
        text = f"{service.kind} {service.name!r} reads only tables that are whole on every worker"
        hint = "a change of such a table calls nobody: read a stream, or the table itself"
        yield Problem("service.broadcast", text, hint, service.place)
    for table in given:
        if not isinstance(table, Table):
            name = getattr(table, "name", table)
            text = f"{service.kind} {service.name!r}: {name!r} is not a table"
            hint = "only tables are broadcast: app.table(...)"
            yield Problem("service.broadcast", text, hint, service.place)
        elif not any(table is table_for(*each, service.broadcasts) for each in service.rows):
            name = table.record.name
            text = f"{service.kind} {service.name!r} reads {table.name!r} whole, and never uses it"
            hint = f"add a parameter {table.name}: Rows[{name}]"
            yield Problem("service.broadcast", text, hint, service.place)
    for name, kind in service.rows:
        if table_for(name, kind, service.broadcasts) is None:
            shown = getattr(kind, "__name__", str(kind))
            text = f"{service.kind} {service.name!r}: no table gives {name!r} its rows of {shown}"
            hint = "read one: reads=(..., broadcast(table)); of several of one type, call the "
            hint += "parameter like the table"
            yield Problem("service.broadcast", text, hint, service.place)


def _unknown(service: Service, signature: Signature, *, other: str) -> Iterator[Problem]:
    for name in signature.unknown:
        text = f"{service.kind} {service.name!r}: its parameter {name!r} has no known annotation"
        hint = f"annotate it: {name}: State[...], ListState[...], MapState[...], Timers"
        hint += f" or {other}" if other != "Timers" else ""
        if name.startswith("*"):
            hint = "remove it: each parameter needs a name and an annotation"
        yield Problem("service.parameter", text, hint, service.place)
    for wrong, right in signature.mistakes:
        text = f"{service.kind} {service.name!r}: the state {wrong}"
        yield Problem("service.state", text, f"write {right}", service.place)


def _timers(service: Service, definition: Definition) -> Iterator[Problem]:
    on_timer = definition.on_timer
    if on_timer is None:
        if definition.process.timers:
            text = f"{service.kind} {service.name!r} uses timers, but has no method on_timer"
            hint = "make it a class with process and on_timer"
            yield Problem("service.timers", text, hint, service.place)
        return
    if on_timer.takes != (Timer,):
        text = f"{service.kind} {service.name!r}: on_timer does not take a Timer first"
        hint = "write it as def on_timer(self, timer: Timer, ...)"
        yield Problem("service.timers", text, hint, service.place)
    if on_timer.context:
        what = f"{service.kind} {service.name!r}"
        text = f"{what}: on_timer takes a Context, but a timer is not a record"
        yield Problem("service.timers", text, "the Timer has both times", service.place)
    yield from _unknown(service, on_timer, other="Timers")


def _gives(service: Service, definition: Definition) -> Iterator[Problem]:
    found = [definition.process, *([definition.on_timer] if definition.on_timer else [])]
    if any(signature.gives is None for signature in found):
        text = f"{service.kind} {service.name!r} has no return annotation"
        hint = "annotate it: -> None, -> Record or -> Iterable[Record]"
        yield Problem("service.gives", text, hint, service.place)
        return
    gives = dict.fromkeys(given for signature in found for given in signature.gives or ())
    written = [data.record.cls for data in service.writes]
    for given in gives:
        if given is Any or given in written:
            continue
        text = f"{service.kind} {service.name!r} gives {_types((given,))}, but writes " + (
            ", ".join(f"{data.name} ({data.record.name})" for data in service.writes) or "nothing"
        )
        hint = "add the stream for it to writes=..."
        if record_type(given) is None:
            hint = "return or yield records: they are written as they are"
        yield Problem("service.gives", text, hint, service.place)
    yields = any(signature.yields and not signature.gives for signature in found)
    for data in service.writes:
        name = data.record.name
        if data.record.cls not in gives and Any not in gives:
            text = f"{service.kind} {service.name!r} writes {data.name!r}, but never gives {name}"
            hint = f"add {name} to the return annotation, or remove {data.name!r} from writes"
            if yields:
                hint = f"it yields: annotate it with -> Iterator[{name}]"
            yield Problem("service.never-gives", text, hint, service.place)
    yield from _ambiguous(service, [each for one in found for each in one.unaddressed])


def _ambiguous(service: Service, unaddressed: list[Any]) -> Iterator[Problem]:
    """A record that says nothing but its type goes to the one stream of that type."""
    for kind in dict.fromkeys(unaddressed):
        homes = [data for data in service.writes if data.record.cls is kind]
        if len(homes) > 1:
            name, names = homes[0].record.name, " and ".join(data.name for data in homes)
            text = f"{service.kind} {service.name!r} gives {name}, which {names} both hold"
            hint = f"say which: send({homes[0].name}, {name}(...)), and annotate -> Output[{name}]"
            yield Problem("service.ambiguous", text, hint, service.place)


def _states(service: Service) -> Iterator[Problem]:
    for one, other in combinations(service.states, 2):
        if one.name == other.name:
            text = f"{service.kind} {service.name!r} declares the state {one.name!r} with two types"
            hint = "a state has one type: write the same annotation in process and on_timer"
            yield Problem("service.state", text, hint, service.place)
    for spec in service.states:
        if why := _never_lives(spec.ttl):
            text = f"{service.kind} {service.name!r}: the state {spec.name!r}: ttl: {why}"
            yield Problem("service.state", text, 'write ttl("1h"), for example', service.place)
        for kind in (spec.type, *([spec.key] if spec.kind == "map" else [])):
            if why := _unkeepable(kind):
                what = f"{service.kind} {service.name!r}: the state {spec.name!r}"
                text = f"{what} cannot be kept: {why}"
                hint = "JSON holds numbers, texts, instants, record types, lists, maps, X | None"
                yield Problem("service.state", text, hint, service.place)
        yield from _names(service, spec)
    if service.keeps_state:
        yield from _keys(service)
    elif service.time_order is not None:
        yield from _same_partitions(service, "reads by event time")
    if service.reads_by_time is not None and len(service.reads) < _SEVERAL:
        text = f"{service.kind} {service.name!r} reads one input by event time"
        hint = "one input has an order already: reads=..., or name several"
        yield Problem("service.time-order", text, hint, service.place)


def _names(service: Service, spec: StateSpec) -> Iterator[Problem]:
    """Yield what is wrong with the names of a map's entries."""
    if spec.kind == "map" and getattr(get_origin(spec.key) or spec.key, "__hash__", 0) is None:
        what = f"{service.kind} {service.name!r}: the state {spec.name!r}"
        text = f"{what} has {_types((spec.key,))} as names, which no dict can have"
        hint = "use a text, a number, an instant or a tuple as the name of an entry"
        yield Problem("service.state", text, hint, service.place)


def _never_lives(ttl: timedelta | None) -> str:
    """Say why a span is not a time to live; empty: it is one, or there is none."""
    if isinstance(ttl, UnreadableSpan):
        return ttl.problem
    return f"{ttl} is not a time to live" if ttl is not None and ttl <= timedelta() else ""


def _unkeepable(kind: Any) -> str:
    """Say why values of a type cannot be written as JSON and read again; empty: they can."""
    try:
        msgspec.json.schema(kind)
    except (TypeError, RuntimeError) as error:
        name = str(kind) if get_args(kind) else _types((kind,))
        if "custom types" in str(error):
            return f"{name} has no form in JSON"
        if "union" in str(error):
            return f"JSON cannot distinguish the types of {_types(get_args(kind)) or name}"
        return str(error).partition("\n")[0]
    return ""


def _talk(service: Service, definition: Definition) -> Iterator[Problem]:
    """Who asks must take that nobody answers, and say of each question that it is one."""
    found = [definition.process, *([definition.on_timer] if definition.on_timer else [])]
    takes = {unanswered(kind) for kind in definition.process.takes}
    for each in service.asks:
        name = each.stream.record.name
        if each.stream.record.cls not in takes and Any not in takes:
            text = f"{service.kind} {service.name!r} asks {each.name!r}, and does not take silence"
            hint = f"take Unanswered[{name}] too: it comes if nobody answers in time"
            yield Problem("ask.no-time-out", text, hint, service.place)
        if any(each.stream.record.cls in signature.unaddressed for signature in found):
            text = f"{service.kind} {service.name!r} gives {name} itself, which asks nothing"
            hint = f"ask({each.name}, {name}(...)), and annotate -> Output[{name}]"
            yield Problem("ask.not-asked", text, hint, service.place)


def _keys(service: Service) -> Iterator[Problem]:
    answers = [each.answers for each in service.asks]
    for data in service.reads:
        if data in answers:  # they come under the key of whoever asked
            continue
        if not data.record.schema.key or data.topic.partitioning != "key":
            what = f"{service.kind} {service.name!r}"
            text = f"{what} keeps state, but {data.kind} {data.name!r} has no key"
            hint = f'state is per key: @record(key="...") above class {data.record.name}'
            yield Problem("service.no-key", text, hint, service.place)
    yield from _same_partitions(service, "keeps state")


def _same_partitions(service: Service, does: str) -> Iterator[Problem]:
    for one, other in combinations(service.reads, 2):
        if one.topic.partitions != other.topic.partitions:
            counts = f"{one.topic.partitions} and {other.topic.partitions}"
            text = (
                f"{service.kind} {service.name!r} {does} over {one.name!r} and "
                f"{other.name!r}, which have {counts} partitions"
            )
            hint = "a key must be in one task: give both the same number of partitions"
            yield Problem("service.partitions", text, hint, service.place)


def _types(types: tuple[Any, ...]) -> str:
    return " | ".join(getattr(found, "__name__", str(found)) for found in types)
