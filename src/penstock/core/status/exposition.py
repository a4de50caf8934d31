"""The status of parts as Prometheus text."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.core.printable import printable
from penstock.core.status.status import PartStatus, RunStatus

__all__ = ["CATALOGUE", "CONTENT_TYPE", "PREFIX", "nested", "prometheus_text", "series"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

CATALOGUE: Mapping[str, str] = {
    "received_records_total": "input records taken in",
    "passed_records_total": "input records that gave an output, or were given to a pipeline",
    "filtered_records_total": "input records that gave none",
    "dead_lettered_records_total": "input records that could not be used",
    "written_records_total": "output records",
    "in_flight_records": "taken in, not committed",
    "lag_records": "records behind the end of the input",
    "up": "whether it runs as it should",
    "process_restarts_total": "how often its process died and was started again",
    "report_age_seconds": "how long ago it last reported",
    # Pipelines.
    "partition_lag_records": "records behind the end of one input partition",
    "batch_seconds": "how long batches take",
    "batch_number": "the last batch that was done",
    "batch_step_seconds_total": "time spent in each step of the batches",
    "sink_task_seconds_total": "time that tasks spent on writing rows and committing them",
    "watermark_timestamp_seconds": "the watermark, in seconds since 1970",
    "watermark_behind_clock_seconds": "from the watermark to the clock",
    "watermark_behind_newest_seconds": "from the watermark to the newest event time seen",
    "newest_event_timestamp_seconds": "the newest event time seen, in seconds since 1970",
    "history_records": "records of the histories that a pipeline reads before the log",
    "history_records_left": "about how many of them are not read yet",
    "state_rows": "rows that the state of a pipeline holds",
    "state_memory_bytes": "memory that the state of a pipeline uses",
    "state_disk_bytes": "files that the state of a pipeline is kept in",
    "state_partitions": "partitions that the state of a pipeline is cut into",
    "state_task_seconds_total": "time that tasks spent on state, by what they did",
    "panes_total": "panes by their timing, and results withdrawn by later panes",
    "late_records_total": "entries of the late ledger: no window took the record",
    "operator_facts_total": "what an operator counts, by its words",
    "ahead_records_total": "entries of the late ledger: too far ahead of the clock",
    "dropped_rows_total": "rows that a pipeline's own PySpark dropped behind the watermark",
    # Services.
    "process_seconds": "how long a record takes to be handled",
    "commit_seconds": "how long commits take",
    "end_to_end_seconds": "from the writing of the oldest record of a commit to its end",
    "restarts_total": "how often a worker, or a task of it, began again after trouble",
    "skipped_offsets_total": "offsets that retention deleted before they were read",
    "running_partitions": "input partitions that are worked on",
    "retrying_partitions": "input partitions that wait for a record to be tried again",
    "restoring_partitions": "input partitions whose state is being restored",
    "restored_records": "changelog records read, of the restores under way",
    "restore_expected_records": "changelog records to read, of the restores under way",
    "restore_left_seconds": "how long the restores under way will still take, while that is known",
    "standby_partitions": "partitions of other workers whose state is followed here",
    "standby_records": "changelog records that copies of other workers' state have read",
    "state_keys": "values that the state of a service holds, of state on disk about",
    "state_timers": "timers that are set",
    "late_answers_total": "answers that came after their time-out, or twice",
    "actors": "actors that are in memory",
    "actors_started_total": "actors that received their first message, or began anew",
    "actors_waked_total": "actors that came back into memory for a message or a timer",
    "actors_passivated_total": "actors that left memory because they were idle",
    "state_records": "records that the panes of a service are kept in",
}
"""Every series there is, without the prefix, and what it says."""

PREFIX = "penstock_"
_HISTOGRAM_PARTS = ("_bucket", "_sum", "_count")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n"}
_ORIGINALS = {escape: original for original, escape in _ESCAPES.items()}


def series(name: str, **labels: str) -> str:
    """Return the name of a series with its labels, as ``PartReport.metrics`` has them.

    >>> series("panes_total", kind="early")
    'panes_total{kind="early"}'
    """
    return f"{name}{{{_labels(labels)}}}" if labels else name


def nested(metrics: Mapping[str, float]) -> dict[str, Any]:
    """Return metrics by name, and inside by the values of their labels, for JSON.

    >>> nested({"up": 1, 'panes_total{kind="early"}': 2, 'panes_total{kind="late"}': 0})
    {'up': 1, 'panes_total': {'early': 2, 'late': 0}}
    """
    found: dict[str, Any] = {}
    for each, value in metrics.items():
        name, _, labels = each.partition("{")
        *path, last = name, *(_unescaped(text) for _, text in _LABEL.findall(labels))
        inside = found
        for step in path:
            inside = inside.setdefault(step, {})
        inside[last] = value
    return found


def prometheus_text(status: RunStatus) -> str:
    """Return the status of a run as Prometheus text.

    ``received = passed + filtered + dead_lettered + in_flight`` holds for every part and process.
    """
    families: dict[str, _Family] = {}
    for each in status.parts:
        labels = _labels({"app": status.app, "part": each.part, "process": each.process})
        for name, value in _samples(each):
            plain, _, own = name.partition("{")
            part = next((end for end in _HISTOGRAM_PARTS if plain.endswith(end)), "")
            family = families.setdefault(plain.removesuffix(part), _Family(histogram=bool(part)))
            inside = ",".join(filter(None, [labels, own.removesuffix("}")]))
            family.samples[f"{plain}{{{inside}}}"] = value
    return "".join(family.text(name) for name, family in families.items())


def _samples(part: PartStatus) -> Iterable[tuple[str, float]]:
    for name in ("received", "passed", "filtered", "dead_lettered", "written"):
        yield f"{name}_records_total", getattr(part.counts, name)
    yield "in_flight_records", part.counts.in_flight
    if part.lag is not None:
        yield "lag_records", part.lag
    yield "up", int(part.state == "running")
    yield "process_restarts_total", part.restarts
    if part.silent_seconds is not None:
        yield "report_age_seconds", part.silent_seconds
    yield from part.metrics.items()


@dataclass(slots=True)
class _Family:
    histogram: bool
    samples: dict[str, float] = field(default_factory=dict)

    def text(self, name: str) -> str:
        kind = "counter" if name.endswith("_total") else "gauge"
        heads = [f"# TYPE {PREFIX}{name} {'histogram' if self.histogram else kind}"]
        if about := CATALOGUE.get(name):
            heads.insert(0, f"# HELP {PREFIX}{name} {about}")
        lines = (f"{PREFIX}{sample} {value!r}" for sample, value in self.samples.items())
        return "\n".join([*heads, *lines]) + "\n"


def _labels(labels: Mapping[str, str]) -> str:
    return ",".join(
        f'{name}="{"".join(_ESCAPES.get(each, each) for each in printable(text))}"'
        for name, text in labels.items()
    )


def _unescaped(text: str) -> str:
    return re.sub(r"\\.", lambda found: _ORIGINALS.get(found[0], found[0]), text)
