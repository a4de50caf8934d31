"""What an application runs: sources, pipelines and services, as values.

Long because all kinds of parts are here, to be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal, Protocol

from penstock.core.graph.data import Data, Lake, OnLog, Stream, Table
from penstock.core.graph.policy import ErrorPolicy
from penstock.core.graph.questions import Questions
from penstock.core.graph.state import StateSpec
from penstock.core.operators.operator import Operator, Plan
from penstock.core.options import span_of
from penstock.core.rollup.aggregation import Aggregation
from penstock.core.topic import TopicSpec
from penstock.errors import Place

__all__ = [
    "DEFAULT_CONCURRENCY",
    "DEFAULT_IDLE_AFTER",
    "DEFAULT_TIMEOUT",
    "FILLING",
    "ON_SPARK",
    "Actor",
    "Connector",
    "Delivery",
    "MicroBatch",
    "Part",
    "Pipeline",
    "RealTime",
    "Service",
    "Sink",
    "SinkConnector",
    "Source",
    "micro_batch",
    "real_time",
]

DEFAULT_CONCURRENCY = 64
DEFAULT_TIMEOUT = timedelta(seconds=30)
DEFAULT_IDLE_AFTER = timedelta(minutes=10)

FILLING = "filling"
"""What the name of a part ends with that computes a declared stream or table."""

ON_SPARK = frozenset({"pipeline", "job"})
"""The kinds of parts that run in one Spark of their process."""

Delivery = Literal["at_most_once", "at_least_once", "exactly_once"]


class Part:
    """What an application runs. Graph, look-up, topics, drawing and cycles know no more of it.

    A kind of part is a frozen dataclass made from this.
    """

    name: str
    kind: str
    """Its kind in a word, as people read it."""
    place: Place | None

    __slots__ = ()

    @property
    def inputs(self) -> tuple[Data, ...]:
        """What it reads of the application's data."""
        return ()

    @property
    def outputs(self) -> tuple[Data, ...]:
        """What it writes of the application's data."""
        return ()

    @property
    def aggregation(self) -> Aggregation | None:
        """What it computes, where that was declared as a windowed aggregation."""
        return None

    @property
    def operator(self) -> Operator | None:
        """What it computes, where that was declared as an operator: a join, a selection."""
        return None

    @property
    def declared(self) -> bool:
        """Whether it computes what was declared, rather than calls a function."""
        return self.aggregation is not None or self.operator is not None

    @property
    def plan(self) -> Plan | None:
        """Its operator, ready to run."""
        return None

    @property
    def has_late_records(self) -> bool:
        """Whether records may come too late for it."""
        return self.aggregation is not None or (self.plan is not None and self.plan.stateful)

    @property
    def feedback(self) -> tuple[str, ...]:
        """Names of what it writes that close a cycle on purpose."""
        return ()

    @property
    def from_outside(self) -> bool:
        """Whether what it writes comes from outside, so that it need not read anything."""
        return False

    @property
    def summary(self) -> str:
        """What it is, in a few words: ``service, exactly once``."""
        return self.kind

    def own_topics(self, app: str) -> Mapping[str, TopicSpec]:
        """Return the topics that only it uses, by what they are: ``changelog``."""
        del app
        return {}


class Connector(Protocol):
    """A way in from an outside system; ``penstock.connectors`` has them and says how to write one.

    It may have ``problems``, a tuple of what is wrong with its options, for `penstock check`.
    """

    @property
    def interactive(self) -> bool:
        """Whether it needs a person at a terminal; `penstock dev` leaves it to them."""

    def describe(self) -> str:
        """Return what it reads, for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source(Part):
    """Brings records of an outside system onto a stream."""

    name: str
    connector: Connector
    into: OnLog
    parse: Callable[[Any], Any] | None = field(default=None, compare=False)
    place: Place | None = field(default=None, compare=False, repr=False)
    kind: Literal["source"] = field(default="source", init=False)

    @property
    def inputs(self) -> tuple[Data, ...]:
        """Return what it reads of the application's data: nothing."""
        return ()

    @property
    def outputs(self) -> tuple[Data, ...]:
        """Return what it writes."""
        return (self.into,)

    @property
    def from_outside(self) -> bool:
        """Return True: its records come from an outside system."""
        return True

    @property
    def positioned(self) -> bool:
        """Whether it can be read again from a position, which it needs a topic for."""
        return any(callable(getattr(self.connector, name, None)) for name in ("open", "attach"))

    @property
    def delivery(self) -> Delivery:
        """Return what a reader of committed records may rely on."""
        return "exactly_once" if self.positioned else "at_most_once"

    @property
    def summary(self) -> str:
        """What it is: ``source, lines of notes.txt``."""
        return f"{self.kind}, {self.connector.describe()}"

    def positions(self, app: str) -> TopicSpec:
        """Return the topic that keeps how far it has been read."""
        return _own_topic(app, self.name, "positions", partitions=1)

    def own_topics(self, app: str) -> Mapping[str, TopicSpec]:
        """Return its positions, where it can be read again from one."""
        return {"positions": self.positions(app)} if self.positioned else {}


class SinkConnector(Protocol):
    """A way out to an outside system; ``penstock.connectors`` has them and says how to write one.

    It may have ``problems``, a tuple of what is wrong with its options, for `penstock check`.
    """

    @property
    def delivery(self) -> Delivery:
        """What a reader of the outside system may rely on."""

    def describe(self) -> str:
        """Return where it writes, for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sink(Part):
    """Writes the records of a stream, or the rows of a table, to an outside system."""

    name: str
    connector: SinkConnector
    reads: OnLog
    place: Place | None = field(default=None, compare=False, repr=False)
    kind: Literal["sink"] = field(default="sink", init=False)

    @property
    def inputs(self) -> tuple[Data, ...]:
        """Return what it reads."""
        return (self.reads,)

    @property
    def outputs(self) -> tuple[Data, ...]:
        """Return what it writes of the application's data: nothing."""
        return ()

    @property
    def delivery(self) -> Delivery:
        """Return what a reader of the outside system may rely on."""
        return self.connector.delivery

    @property
    def summary(self) -> str:
        """What it is: ``sink, at least once, JSON lines in out/``."""
        return f"{self.kind}, {_words(self.delivery)}, {self.connector.describe()}"


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """Spark takes what has come since the last batch, at most this often."""

    every: timedelta = timedelta()


@dataclass(frozen=True, slots=True)
class RealTime:
    """Spark handles records as they come (milliseconds, at least once, stateless only)."""

    checkpoint_every: timedelta = timedelta(seconds=60)


def micro_batch(*, every: str | timedelta = "0s") -> MicroBatch:
    """Run a pipeline in micro-batches: Spark takes what has arrived since the last batch.

    This is the default of ``app.pipeline``. It writes exactly once and allows every operator of
    Spark. Without ``every`` a batch begins as soon as the last one has ended and something is
    there; results take about 100 ms or more. ``penstock check`` reports a span that it cannot read.

    Examples:
        >>> @app.pipeline(reads=readings, writes=copies, trigger=micro_batch(every="10s"))
        ... def copy_in_batches(readings):
        ...     return readings
    """
    return MicroBatch(span_of(every))


def real_time(*, checkpoint_every: str | timedelta = "60s") -> RealTime:
    """Run a pipeline in Spark's real-time mode: each record takes milliseconds.

    It writes at least once: what a crash interrupts is written again, up to ``checkpoint_every``
    of it. Only operators without state are possible, no Python functions, and no output into the
    lake. The pipeline does not start where Spark refuses its plan.

    Examples:
        >>> @app.pipeline(reads=readings, writes=copies, trigger=real_time())
        ... def copy_at_once(readings):
        ...     return readings
    """
    return RealTime(span_of(checkpoint_every))


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline(Part):
    """A function from DataFrames to a DataFrame, run by Spark as a stream or over a range."""

    name: str
    function: Callable[..., Any] = field(compare=False)
    reads: tuple[Data, ...]
    writes: Data
    trigger: MicroBatch | RealTime = MicroBatch()
    output: Literal["append", "update", "complete"] = "append"
    aggregation: Aggregation | None = None
    """What it computes, where that was declared as a windowed aggregation."""
    operator: Operator | None = None
    """What it computes, where that was declared as an operator."""
    plan: Plan | None = field(default=None, compare=False, repr=False)
    """The operator, ready to run."""
    place: Place | None = field(default=None, compare=False, repr=False)
    kind: Literal["pipeline"] = field(default="pipeline", init=False)

    @property
    def inputs(self) -> tuple[Data, ...]:
        """Return what it reads, the archives of its streams included."""
        archives = (data.archive for data in self.reads)
        return (*self.reads, *(archive for archive in archives if archive is not None))

    @property
    def outputs(self) -> tuple[Data, ...]:
        """Return what it writes."""
        return (self.writes,)

    @property
    def delivery(self) -> Delivery:
        """Return what a reader of committed records may rely on."""
        return "at_least_once" if isinstance(self.trigger, RealTime) else "exactly_once"

    @property
    def lookups(self) -> tuple[Table[Any] | Lake[Any], ...]:
        """Return what is looked up as it is at each batch.

        Tables beside a stream, and lake tables beside a stream or a table; alone they are streams.
        An operator looks up nothing: it follows the changes of its tables.
        """
        if self.operator is not None:
            return ()
        kinds = {data.kind for data in self.reads}
        flows = "stream" if "stream" in kinds else "table" if "table" in kinds else "lake"
        return tuple(
            data for data in self.reads if not isinstance(data, Stream) and data.kind != flows
        )

    @property
    def followed(self) -> tuple[OnLog, ...]:
        """Return the streams and tables whose topics it follows, record by record."""
        lookups = self.lookups
        return tuple(
            data for data in self.reads if not isinstance(data, Lake) and data not in lookups
        )

    @property
    def summary(self) -> str:
        """What it is: ``pipeline, micro-batch, append, exactly once``."""
        mode = "real-time" if isinstance(self.trigger, RealTime) else "micro-batch"
        if self.operator is not None:
            return f"{self.operator.kind}, on Spark, {mode}, {_words(self.delivery)}"
        return f"{self.kind}, {mode}, {self.output}, {_words(self.delivery)}"

    def __call__(self, *frames: Any) -> Any:
        """Call the user's function itself, as its own tests do."""
        return self.function(*frames)


@dataclass(frozen=True, slots=True, kw_only=True)
class Service(Part):
    """A function, or a class or object with ``process``, that handles one record at a time."""

    name: str
    function: Any = field(compare=False)
    reads: tuple[OnLog, ...]
    writes: tuple[OnLog, ...]
    broadcasts: tuple[Table[Any], ...] = ()
    """Tables that each of its workers has whole."""
    rows: tuple[tuple[str, Any], ...] = ()
    """The parameters that take rows of these, and of which type they are."""
    reads_by_time: timedelta | None = None
    """Its inputs are read in the order of event time, and one at its end is waited for so long."""
    changes: tuple[str, ...] = ()
    """The topics of the tables whose rows come with what was before, and deletions too."""
    feedback: tuple[str, ...] = ()
    """Names of what it writes that close a cycle on purpose."""
    rounds: tuple[tuple[str, int], ...] = ()
    """The topics of these, and how often a record may come to each."""
    delivery: Delivery = "exactly_once"
    errors: ErrorPolicy = field(default_factory=ErrorPolicy)
    concurrency: int = DEFAULT_CONCURRENCY
    """How many calls of an async service may be under way at a time."""
    timeout: timedelta = DEFAULT_TIMEOUT
    """How long one call of an async service may take."""
    states: tuple[StateSpec, ...] = ()
    context: str | None = None
    """The name of the parameter that takes the Context, if there is one."""
    timed: bool = False
    """Whether it has timers."""
    asks: tuple[Questions[Any, Any], ...] = ()
    """The questions that it asks: it reads their answers."""
    answers: tuple[Questions[Any, Any], ...] = ()
    """The questions that it answers."""
    aggregation: Aggregation | None = None
    """What it computes, where that was declared as a windowed aggregation."""
    operator: Operator | None = None
    """What it computes, where that was declared as an operator."""
    plan: Plan | None = field(default=None, compare=False, repr=False)
    """The operator, ready to run."""
    live: bool = field(default=False, compare=False, repr=False)
    """Whether it does the work of live queries, so that somebody waits for each result."""
    place: Place | None = field(default=None, compare=False, repr=False)
    kind: Literal["service", "actor"] = field(default="service", init=False)

    @property
    def inputs(self) -> tuple[Data, ...]:
        """Return what it reads."""
        return (*self.reads, *self.broadcasts)

    @property
    def outputs(self) -> tuple[Data, ...]:
        """Return what it writes."""
        return self.writes

    @property
    def time_order(self) -> timedelta | None:
        """How long an input at its end is waited for; None: inputs are not read in time's order.

        Operators with state read theirs so, by the time of the log.
        """
        if self.plan is not None and self.plan.stateful and len(self.reads) > 1:
            return timedelta()
        return self.reads_by_time

    @property
    def keeps_state(self) -> bool:
        """Whether it remembers anything per key, so that it needs keys and a changelog."""
        remembers = self.plan is not None and self.plan.stateful
        return self.timed or bool(self.states) or self.aggregation is not None or remembers

    @property
    def summary(self) -> str:
        """What it is: ``service, exactly once, state seen``."""
        if self.operator is not None:
            return f"{self.operator.kind}, on services, {_words(self.delivery)}"
        words = f"{self.kind}, {_words(self.delivery)}"
        states = ", ".join(state.name for state in self.states)
        return f"{words}, state {states}" if states else words

    def changelog(self, app: str) -> TopicSpec:
        """Return the topic that its state is rebuilt from."""
        return _own_topic(app, self.name, "changelog", partitions=self.reads[0].topic.partitions)

    def own_topics(self, app: str) -> Mapping[str, TopicSpec]:
        """Return its changelog, where it keeps state."""
        return {"changelog": self.changelog(app)} if self.keeps_state and self.reads else {}

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call the user's function itself, or make an object of their class, as tests do."""
        call = self.function if callable(self.function) else self.function.process
        return call(*arguments, **named)


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor(Service):
    """A class with an object for each key, which receives messages one after the other.

    It is a service: what runs services runs it, and its fields are a state of it.
    """

    idle_after: timedelta = DEFAULT_IDLE_AFTER
    """An object that received nothing for so long leaves memory."""
    kind: Literal["service", "actor"] = field(default="actor", init=False)

    @property
    def summary(self) -> str:
        """What it is: ``actor, exactly once``."""
        return f"{self.kind}, {_words(self.delivery)}"

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Make an object of the user's class, as its own tests do."""
        return self.function(*arguments, **named)


def _words(delivery: Delivery) -> str:
    return delivery.replace("_", " ")


def _own_topic(app: str, part: str, purpose: str, *, partitions: int) -> TopicSpec:
    """Return a compacted topic for what a part keeps."""
    name = f"{app}.{part}.{purpose}"
    return TopicSpec(name=name, partitions=partitions, compacted=True, retention=None)
