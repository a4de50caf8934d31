"""``python -m apps.anomaly explain ID``: a score of the past, computed once more from the lake."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from apps.anomaly.evidence.running import queried
from apps.anomaly.scoring import MODEL, Score, TelemetryModel, score
from penstock.errors import DataError
from penstock.models import ModelVersion, opened

__all__ = ["ExplainError", "Explained", "explain"]

_ID = re.compile(r"([\w.:-]{1,100})/(\d{1,15})/(\d{1,15})")
_FIELDS = "sha256, shape, parameters, trained_on, figures, published_at"
Query = Callable[[str], list[dict[str, Any]]]


class ExplainError(Exception):
    """A record that cannot be explained, and why."""


@dataclass(frozen=True, slots=True)
class Explained:
    """A record, the version that scored it, its score, and the score computed once more."""

    record: Mapping[str, Any]
    version: ModelVersion
    score: float
    again: Score

    @property
    def same(self) -> bool:
        """Whether both scores are equal, to the last bit."""
        return self.score.hex() == self.again.value.hex()

    def lines(self) -> list[str]:
        """Return the explanation, for people."""
        record, version = self.record, self.version
        shown = [
            (
                f"record     {record['device']}/{record['started']}/{record['number']}, a "
                f"{record['kind']}, at {record['at']}"
            ),
            f"model      {version.model}, version {version.version}, sha256 {version.sha256[:16]}",
            f"trained on {version.trained_on}",
            f"score      {self.score!r}",
            f"once more  {self.again.value!r}, "
            + ("the same to the last bit" if self.same else "NOT THE SAME"),
        ]
        features = record["features"]
        shown += [
            f"  {name:32} {features[name]:<12.6g} adds {part:.6g} to the odds"
            for name, part in self.again.contributions.items()
        ]
        return shown


def explain(name: str, query: Query = queried) -> Explained:
    """Return what explains the score of a record: ``DEVICE/STARTED/NUMBER``."""
    found = _ID.fullmatch(name)
    if found is None:
        raise ExplainError(f"{name!r} is no id: DEVICE/STARTED/NUMBER, as anomalies have them")
    device, started, number = found.groups()
    where = f"device = '{device}' and started = {started} and number = {number}"
    fields = "kind, device, started, number, at, score, model_version, features"
    rows = query(
        # The pattern of an id lets nothing through that could be SQL.
        f"select r.*, {_FIELDS} from (select {fields} from `anomalies.archive` where {where} "  # noqa: S608
        f"union all select {fields} from `samples.archive` where {where} and score is not null) r "
        f"left join model_audit m on m.model = '{MODEL}' and m.version = r.model_version"
    )
    if not rows:
        raise ExplainError(f"{name} is not in the lake: it was not scored, or is not archived yet")
    row = rows[0]
    if row["sha256"] is None:
        raise ExplainError(f"version {row['model_version']} is not in the lake yet: ask again")
    version = ModelVersion(
        model=MODEL,
        version=row["model_version"],
        shape=row["shape"],
        sha256=row["sha256"],
        parameters=row["parameters"],
        trained_on=row["trained_on"],
        figures=_map(row["figures"]),
    )
    try:
        model = opened(version, TelemetryModel)
    except DataError as error:
        raise ExplainError(error.message) from error
    record = row | {"features": _map(row["features"])}
    again = score(model, row["kind"], record["features"])
    if again is None:
        raise ExplainError(f"version {version.version} does not know devices called {row['kind']}")
    return Explained(record, version, row["score"], again)


def _map(value: Any) -> dict[str, float]:
    """Return a map of a query's answer, which may be JSON in a text."""
    return dict(json.loads(value) if isinstance(value, str) else value)
