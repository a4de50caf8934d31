"""Scores over HTTP with a time limit; without an answer, by the last good model on this side."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from time import monotonic
from types import TracebackType
from typing import Self

from apps.anomaly.scoreservice import Scored, ToScore, scored, scores
from apps.anomaly.scoring import MODEL, TelemetryModel, check
from penstock.client import ClientLimits, SyncClient
from penstock.errors import PenstockError
from penstock.models import Models, ModelVersion, Served

__all__ = ["Degraded", "RemoteScores"]

ANSWER_WITHIN = timedelta(milliseconds=500)
"""So long a score may take; then the model on this side gives it..."""
RESTS = timedelta(seconds=5)
"""... and gives all others for so long, before the service is asked again."""


@dataclass(frozen=True, slots=True)
class Degraded:
    """That the service is not asked: since when, and why."""

    since: datetime
    why: str


class RemoteScores:
    """Asks the scoring service behind a gateway.

    Each score comes within ``within`` and a little, whatever the service does. ``degraded`` says
    whether the scores come from this side, since when and why. Not for several threads at once.

    Args:
        url: Where the gateway is.
        within: How long an answer may take.
        rests: How long the service is left alone after it has not answered.
        token: A token of the gateway, where it asks for one.
    """

    def __init__(
        self,
        url: str,
        *,
        within: timedelta = ANSWER_WITHIN,
        rests: timedelta = RESTS,
        token: str | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        limits = ClientLimits(
            connect_timeout=within, silence_timeout=within, patience=within, attempts=1
        )
        self._client = SyncClient(url, token=token, limits=limits)
        self._within, self._rests, self._clock = within, rests, clock
        self._models = Models(MODEL, TelemetryModel, check=check)
        self._local: Served[TelemetryModel] | None = None
        self._asks_again = clock()
        self.degraded: Degraded | None = None

    def __enter__(self) -> Self:
        """Make ready to connect."""
        self._client.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the connections."""
        self._client.__exit__(kind, error, trace)

    def learn(self, versions: Iterable[ModelVersion]) -> None:
        """Take the newest good one of these versions for the model on this side."""
        self._local = self._models.newest(list(versions))

    def score(self, asked: ToScore) -> Scored:
        """Return the score of features: of the service, or of the model on this side."""
        if self._clock() >= self._asks_again:
            try:
                found = self._client.ask(scores, asked, wait=self._within, once=False)
            except PenstockError as error:
                self._rest(error.message)
            else:
                self.degraded = None
                return found
        return scored(self._local, asked)

    def _rest(self, why: str) -> None:
        self._asks_again = self._clock() + self._rests.total_seconds()
        since = datetime.now(UTC) if self.degraded is None else self.degraded.since
        self.degraded = Degraded(since, why)
