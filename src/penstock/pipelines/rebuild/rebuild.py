"""Recompute a pipeline from the log, beside the one that runs, and replace it.

See ``generations`` for the steps. What a rebuild sets aside (dead letters, late records) was
reported by the run that it replaces, and is not written again; late records are counted.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.backbone.site import Site
from penstock.backbone.topics.topics import Topics
from penstock.core.graph.data import Archive, Data, Lake, Stream
from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Pipeline, RealTime
from penstock.core.wiring.lookup import find_part
from penstock.errors import ConfigurationError, TransientError
from penstock.machine.locks import FileLock
from penstock.pipelines.checkpoint.batches import Offsets, committed_offsets, offsets_of
from penstock.pipelines.checkpoint.files import Files
from penstock.pipelines.checkpoint.generations import Generations, Standing
from penstock.pipelines.checkpoint.progress import recent_progress
from penstock.pipelines.execution.plan import Run, checkpoint_of, prepared_query, program_of
from penstock.pipelines.history.history import Histories
from penstock.pipelines.history.settling import Settling
from penstock.pipelines.rebuild.handover import Handover
from penstock.pipelines.rollups.latetally import LateCount, LateTally, late_count
from penstock.pipelines.spark.failures import of_query
from penstock.pipelines.spark.session import session

__all__ = ["Rebuilt", "Watching", "rebuild_pipeline", "refuse_rebuild"]

_LOOK_SECONDS = 0.5
_SHORT_ROUND_SECONDS = 15.0
"""After a round this short, the new generation handles the rest."""
_GAIN = 0.7
"""A round that took more of the time of the round before does not get nearer to the end."""


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What a rebuild did."""

    output: str
    changed: int | None
    """How many keys of a table have changed, or how many records were added to a stream."""
    late: LateCount | None = None
    """For windows: the late records, which the rebuild writes to no ledger."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watching:
    """Receives the progress of a rebuild, and each durable step."""

    progress: Callable[[int, int], None] = lambda _done, _total: None
    step: Callable[[str], None] = lambda _step: None


def refuse_rebuild(graph: Graph, name: str, *, append: bool) -> Pipeline:
    """Return the pipeline of this name; ConfigurationError where it cannot be rebuilt, and why."""
    if (part := graph.part(name)) is not None and not isinstance(part, Pipeline):
        raise ConfigurationError(
            f"{name!r} is a {part.kind}: only pipelines are rebuilt",
            code="rebuild.not-a-pipeline",
            hint=f"to restart a service from its input: penstock reset --part {name}",
        )
    pipeline = find_part(graph, name, Pipeline)
    data = pipeline.writes
    if isinstance(pipeline.trigger, RealTime):
        raise ConfigurationError(
            f"{name} runs in real-time mode, where the running version cannot be fenced",
            code="rebuild.real-time",
            hint="give it a new name, and stop the old one",
        )
    if isinstance(data, Archive):
        raise ConfigurationError(
            f"{name} fills the archive {data.name}, which holds records that the log no longer has",
            code="rebuild.archive",
            hint="archive the stream under another name: app.archive(..., name=...)",
        )
    if isinstance(data, Stream) and not append:
        raise ConfigurationError(
            f"{name} writes the stream {data.name}, whose records cannot be replaced",
            code="rebuild.stream",
            detail="its readers have seen the old records; the new ones would be appended",
            hint=f"penstock rebuild {name} --append, or give it and its stream new names",
        )
    others = [edge.start for edge in graph.edges() if edge.end == data.name and edge.start != name]
    if others and not isinstance(data, Stream):
        raise ConfigurationError(
            f"{data.name} is also written by {', '.join(others)}",
            code="rebuild.shared",
            detail="their rows cannot be told apart from those of this pipeline",
            hint="give the pipeline an output of its own",
        )
    if isinstance(data, Lake) and (readers := _stream_readers(graph, data)):
        raise ConfigurationError(
            f"{data.name} is read as a stream by {', '.join(readers)}",
            code="rebuild.read-as-stream",
            detail="a table that is replaced is no longer a stream of additions",
            hint="give the pipeline and its table new names",
        )
    return pipeline


def _stream_readers(graph: Graph, data: Data) -> list[str]:
    return [
        part.name
        for part in graph.parts
        if isinstance(part, Pipeline) and data in part.reads and data not in part.lookups
    ]


def rebuild_pipeline(
    graph: Graph,
    name: str,
    site: Site,
    *,
    append: bool = False,
    trimmed: bool = False,
    watching: Watching | None = None,
) -> Rebuilt | None:
    """Recompute a pipeline and switch over; None if ``site.stop`` ended it before the switch.

    It may be killed at any moment and called again: it continues or finishes. Until the switch the
    running pipeline is not disturbed. Then that run is fenced, and the next one continues from the
    new generation. Topics must have been declared.

    ConfigurationError: it cannot be rebuilt (``rebuild.*``); with ``trimmed`` an input need not
    begin at its beginning.
    """
    pipeline = refuse_rebuild(graph, name, append=append)
    lock = FileLock(site.places.home / f"rebuild-{graph.app}.{name}.lock")
    if not lock.acquire():
        raise ConfigurationError(f"{name} is already being rebuilt", code="rebuild.running")
    with lock, session(site.settings, site.places, name=f"{graph.app}.{name}.rebuild") as spark:
        found = _Rebuild(graph, pipeline, site, spark, watching or Watching())
        try:
            return found.run(trimmed=trimmed)
        except (PySparkException, Py4JError) as error:
            raise of_query(error, pipeline) from error


class _Rebuild:
    """One call; all that lasts is in the generations."""

    def __init__(
        self, graph: Graph, pipeline: Pipeline, site: Site, spark: SparkSession, watching: Watching
    ) -> None:
        self._graph = graph
        self._pipeline = pipeline
        self._site = site
        self._spark = spark
        self._watching = watching
        base = checkpoint_of(graph, pipeline, site)
        self._generations = Generations(Files(spark), base, name=pipeline.name)
        self._handover = Handover(f"{graph.app}.{pipeline.name}", pipeline, site, spark)
        self._topics = Topics(site.connection)
        self._histories: Histories | None = None

    def run(self, *, trimmed: bool) -> Rebuilt | None:
        program = program_of(self._pipeline, self._site, self._spark)
        standing = self._tidied(self._generations.read())
        if standing.step == "switching":
            done = self._switch(standing)
            if standing.program == program:
                return done
            standing = self._generations.read()
        if not trimmed:
            self._refuse_trimmed()
        if standing.step != "computing" or standing.program != program:
            standing = self._tidied(self._at(standing.computing(program), "computing"))
        if not self._compute(standing.next):
            return None
        return self._switch(self._at(standing.switching(), "switching"))

    def _at(self, standing: Standing, step: str) -> Standing:
        self._generations.write(standing)
        self._watching.step(step)
        return standing

    def _refuse_trimmed(self) -> None:
        cut = [
            f"{data.name}[{number}] begins at offset {low}"
            for data in self._pipeline.reads
            if isinstance(data, Stream) and data.archive is None
            for number, (low, _) in self._topics.ends(data.topic.name).items()
            if low
        ]
        if cut:
            raise ConfigurationError(
                f"{self._pipeline.name} cannot be computed from the beginning of its input",
                code="rebuild.trimmed",
                detail="retention has deleted it: " + "; ".join(cut),
                hint=f"compute it from the rest: penstock rebuild {self._pipeline.name} --trimmed",
            )

    def _switch(self, standing: Standing) -> Rebuilt:
        """Fence who runs, make the output right, and make the next generation the current one."""
        old, next_ = map(self._generations.checkpoint, (standing.current, standing.next))
        step = self._watching.step
        changed = self._handover.switch(standing.next, old=old, new=next_, step=step)
        step("written")
        self._tidied(self._at(standing.switched(), "switched"))
        late = late_count(Files(self._spark), next_)
        return Rebuilt(self._pipeline.writes.name, changed, late)

    def _tidied(self, standing: Standing) -> Standing:
        """Remove what is left of generations that are of no use any more."""
        if not standing.left:
            return standing
        for number in standing.left:
            self._handover.remove(self._generations.checkpoint(number))
        for number in (*standing.left, standing.current):
            self._handover.remove_shadow(number)
        return self._at(standing.tidied(), "tidied")

    def _compute(self, number: int) -> bool:
        """Compute all there is, and what came meanwhile, until nearly nothing comes any more."""
        into = self._handover.shadow(number)
        if not isinstance(into, Lake):
            self._topics.declare([into.topic])
        run = Run(
            pipeline=self._pipeline,
            name=self._handover.run_name(number),
            checkpoint=self._generations.checkpoint(number),
            into=into,
            beside=True,
        )
        tally = None
        if self._pipeline.aggregation:
            kept = run.checkpoint
            tally = LateTally(self._graph, self._pipeline, self._site, self._spark, kept)
        histories = self._histories = Histories(
            self._graph, self._pipeline, self._site, self._spark, checkpoint=run.checkpoint
        )
        if not self._read_histories(run, histories, tally):
            return False
        before = float("inf")
        while True:
            began = time.monotonic()
            query = self._query(run, histories)
            if not self._follow(query, run.checkpoint, tally):
                return False
            took = time.monotonic() - began
            if took < _SHORT_ROUND_SECONDS or took > _GAIN * before:
                self._watching.step("computed")
                return True
            before = took

    def _query(self, run: Run, histories: Histories) -> StreamingQuery:
        start = prepared_query(self._graph, run, self._site, self._spark, histories=histories)
        return start()

    def _read_histories(self, run: Run, histories: Histories, tally: LateTally | None) -> bool:
        """Read what the archives of its inputs have, before the log; False if it was stopped."""
        settling = Settling(histories, self._pipeline, self._spark)
        while not settling.ready():
            if self._site.stop.wait(_LOOK_SECONDS):
                settling.stop()
                return False
        if histories.through:
            return True
        if not self._follow(self._query(run, histories), run.checkpoint, tally):
            return False
        # It ended by itself: all pieces are in finished batches.
        histories.finish()
        return True

    def _follow(self, query: StreamingQuery, checkpoint: str, tally: LateTally | None) -> bool:
        """Tell how far a query is until it ends; False if it was stopped."""
        reached = committed_offsets(self._spark, checkpoint)
        try:
            while query.isActive and not self._site.stop.wait(_LOOK_SECONDS):
                last: Any = query.lastProgress
                for source in last["sources"] if last else ():
                    reached |= offsets_of(source["endOffset"])
                if last and self._histories is not None:
                    self._histories.follow(last)
                self._tell(reached)
                with suppress(TransientError):
                    _count(query, tally)
        finally:
            stopped = query.isActive
            query.stop()
            # However it ended: the next start does not see these batches any more.
            with suppress(TransientError):
                _count(query, tally)
        if (ended := query.exception()) is not None:
            raise of_query(ended, self._pipeline)
        if stopped or self._site.stop.is_set():
            return False
        _count(query, tally)
        self._tell(committed_offsets(self._spark, checkpoint))
        return True

    def _tell(self, reached: Offsets) -> None:
        # Whether Kafka is away the query finds out itself; here it can wait.
        with suppress(TransientError):
            self._watching.progress(*self._done(reached))

    def _done(self, reached: Offsets) -> tuple[int, int]:
        done = total = 0
        seams: Offsets = {}
        if (past := self._histories) is not None:
            done, total, seams = past.records - past.left, past.records, past.seams
        for data in self._pipeline.followed:
            topic = data.topic.name
            for number, (low, high) in self._topics.ends(topic, committed=True).items():
                first = max(low, seams.get((topic, number), low))
                there = max(high - first, 0)
                total += there
                done += min(max(reached.get((topic, number), first) - first, 0), there)
        return done, total


def _count(query: StreamingQuery, tally: LateTally | None) -> None:
    if tally is not None:
        tally.follow(recent_progress(query, tally.seen))
