"""``python -m apps.anomaly ask``: the newest samples are scored once more, over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from time import perf_counter
from typing import Any

import msgspec

from apps.anomaly.evidence.running import tailed
from apps.anomaly.remote import RemoteScores
from apps.anomaly.scoreservice import ToScore
from penstock.models import ModelVersion

__all__ = ["asked"]

Tail = Callable[..., Sequence[Mapping[str, Any]]]


def asked(url: str, *, most: int, tail: Tail = tailed) -> Iterator[str]:
    """Ask for the scores of the newest samples; give lines that say who answered, and when."""
    versions = [msgspec.convert(row, ModelVersion) for row in tail("model_versions")]
    rows = [row for row in tail("samples", limit=most) if row.get("score") is not None]
    took, here, same, compared = [], 0, 0, 0
    with RemoteScores(url) as remote:
        remote.learn(versions)
        for row in rows:
            began = perf_counter()
            found = remote.score(ToScore(row["device"], row["kind"], row["features"]))
            took.append(perf_counter() - began)
            here += remote.degraded is not None
            if found.model_version == row["model_version"]:
                compared += 1
                same += found.score == row["score"]
        degraded = remote.degraded
    yield f"{len(rows)} samples: the service answered for {len(rows) - here}, this side for {here}"
    if degraded is not None:
        yield f"degraded since {degraded.since:%H:%M:%S} UTC: {degraded.why}"
    yield f"{compared} were scored by the same version before: {same} the same to the last bit"
    if took:
        ordered = sorted(took)
        p50, p99 = (ordered[int(share * (len(ordered) - 1))] * 1_000 for share in (0.5, 0.99))
        yield f"p50 {p50:.1f} ms, p99 {p99:.1f} ms"
