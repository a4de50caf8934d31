"""Runs pipelines and jobs of an application: one Spark, a query for each pipeline."""

import logging
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

from pyspark.sql import SparkSession

from penstock.backbone.site import Site
from penstock.core.graph.graph import Graph
from penstock.core.graph.job import Job
from penstock.core.graph.parts import Pipeline
from penstock.core.status.report import PartReport
from penstock.core.wiring.lookup import find_part
from penstock.errors import ConfigurationError
from penstock.pipelines.execution.attempts import Attempts
from penstock.pipelines.execution.plan import held_slots
from penstock.pipelines.jobs.running import RunningJob
from penstock.pipelines.lake.caretaker import caretaker
from penstock.pipelines.spark.cluster import is_local, refuse_unshared
from penstock.pipelines.spark.failures import of_session
from penstock.pipelines.spark.session import session

__all__ = ["run_pipelines"]

_LOG = logging.getLogger("penstock.pipelines")
_LOOK_SECONDS = 0.5
_EXECUTORS_LIMIT = timedelta(seconds=30)


def run_pipelines(graph: Graph, names: Sequence[str], site: Site) -> None:
    """Run pipelines and jobs until ``site.stop`` is set; their topics must have been declared.

    They share one Spark and its cores fairly, and end together: if one fails, the others are
    stopped and its error is raised. Each continues from its checkpoint, and restarts by itself
    after transient failures: see ``Attempts``. The lake tables that they write are maintained
    meanwhile.
    """
    jobs = [part for name in names if isinstance(part := graph.part(name), Job)]
    others = [name for name in names if not isinstance(graph.part(name), Job)]
    pipelines = [find_part(graph, name, Pipeline) for name in others]
    refuse_unshared(site.settings, pipelines)
    for part in (*pipelines, *jobs):
        site.report(PartReport(part=part.name, kind=part.kind, state="starting", at=time.time()))
    held = sum(held_slots(pipeline) for pipeline in pipelines)
    name = f"{graph.app}.{names[0]}"
    try:
        with session(site.settings, site.places, name=name, held=held) as spark:
            _check_slots(spark, held)
            _run(graph, pipelines, jobs, site, spark)
    except Exception as error:
        if (named := of_session(error)) is error:
            raise
        raise named from error


def _check_slots(spark: SparkSession, held: int) -> None:
    """Refuse partitions that would wait for a slot for ever; Spark does not refuse them."""
    context = spark.sparkContext
    patience = 0.0 if is_local(context.master or "") else _EXECUTORS_LIMIT.total_seconds()
    deadline = time.monotonic() + patience
    # Executors of a cluster come one after the other.
    while held >= (there := context.defaultParallelism) and time.monotonic() < deadline:
        time.sleep(_LOOK_SECONDS)
    if held and held >= there:
        raise ConfigurationError(
            f"real-time mode needs {held + 1} slots; {context.master} has {there}",
            code="spark.slots",
            detail="one for each partition that it reads, and one for everything else",
            hint=f"set spark.master to local[*], or local[{held + 1}], or a larger cluster",
        )


def _run(
    graph: Graph,
    pipelines: Sequence[Pipeline],
    jobs: Sequence[Job],
    site: Site,
    spark: SparkSession,
) -> None:
    running = [Attempts(graph, pipeline, site, spark) for pipeline in pipelines]
    repeated = [RunningJob(graph, job, site, spark) for job in jobs]
    failed: Exception | None = None
    try:
        # All of them before any: where one is refused none has begun.
        for each in running:
            each.prepare()
        with caretaker(pipelines, site, spark) as keeper:
            while not site.stop.is_set():
                for each in running:
                    site.report(keeper.with_upkeep(each.look(), each.pipeline))
                for job in repeated:
                    site.report(job.look())
                site.stop.wait(_LOOK_SECONDS)
    except Exception as error:
        failed = of_session(error)
        raise
    finally:
        _stop((*running, *repeated), failed)


def _stop(running: Sequence[Attempts | RunningJob], failed: Exception | None) -> None:
    """Stop all of them side by side; see ``Attempts.stop``."""
    with ThreadPoolExecutor(len(running), thread_name_prefix="stop") as executor:
        for each, result in [(each, executor.submit(each.stop)) for each in running]:
            if (error := result.exception()) is not None:
                _LOG.warning("%s did not stop: %s", each.name, error)
    for each in running:
        each.finish(failed)
