"""Drives that are about to fail: scored one record at a time, and taken out of use in order.

::

    drive_days ──▶ score_drives ──▶ drive_anomalies ──▶ drive ──▶ drive_changes ──▶ drive_commands
    model_versions ──┘ └──▶ model_alarms                ▲               └──▶ drive_alarms
                                                   drive_work

A drive reports its values once a day. ``score_drives`` keeps what has to be remembered of each
drive and scores the day with the newest good version of the model. Only anomalous days go on. The
life cycle ``drive`` says what follows: data is moved off a failing drive, then it is turned off.
"""

from collections.abc import Iterator
from datetime import datetime

from apps.anomaly.application import app, model_alarms, model_versions
from apps.anomaly.drives.features import DriveDay, DriveHistory
from apps.anomaly.drives.model import MODEL, DriveModel, check
from apps.anomaly.records import ModelAlarm
from penstock import EventTime, State, record
from penstock.lifecycles import lifecycle
from penstock.models import Models, ModelVersion
from penstock.tables import Rows, broadcast

CONTRIBUTIONS = 3
"""How many of the features are named that contributed most."""


@record(key="serial", time="at")
class DriveAnomaly:
    """A day on which a drive looked like one that will fail."""

    serial: str
    at: datetime
    score: float
    threshold: float
    certain: bool
    """Whether the drive is beyond doubt, and is to be turned off."""
    model_version: int
    contributions: dict[str, float]
    """What contributed most to the logarithm of the odds."""


@record(key="serial", time="at")
class DriveWork:
    """What was done with a drive: its data was moved, it was turned off, it was repaired."""

    serial: str
    at: datetime
    done: str


drive_days = app.stream("drive_days", DriveDay, event_time=EventTime(disorder="1d"))
drive_work = app.stream("drive_work", DriveWork, event_time=EventTime(follows="newest"))
drive_anomalies = app.stream("drive_anomalies", DriveAnomaly, event_time=EventTime(disorder="1d"))


@app.service(
    reads=(drive_days, broadcast(model_versions)),
    writes=(drive_anomalies, model_alarms),
    name="score_drives",
)
class ScoreDrives:
    """Scores every day of every drive; without a good model, days are only remembered."""

    def __init__(self) -> None:
        self.models = Models(MODEL, DriveModel, check=check)

    def process(
        self, day: DriveDay, history: State[DriveHistory], rows: Rows[ModelVersion]
    ) -> Iterator[DriveAnomaly | ModelAlarm]:
        """Remember a day and score it; say which versions of the model are not used."""
        before = history.get(DriveHistory())
        after = before.after(day)
        history.set(after)
        served = self.models.newest(rows)
        for refusal in self.models.refusals():
            yield ModelAlarm(refusal.model, refusal.version, refusal.code, refusal.reason)
        if served is None:
            return
        model = served.parameters
        features = after.features(day, before=before, model_risk=model.risk(day.model))
        if (score := model.score(features)) > model.threshold:
            yield DriveAnomaly(
                serial=day.serial,
                at=day.at,
                score=score,
                threshold=model.threshold,
                certain=score > model.certain,
                model_version=served.version,
                contributions=dict(list(model.contributions(features).items())[:CONTRIBUTIONS]),
            )


drive = (
    lifecycle("healthy", "suspect", "failing", "draining", "off", "repaired")
    .on(drive_anomalies, "healthy | repaired -> failing", where="certain")
    .on(drive_anomalies, "healthy | repaired -> suspect")
    .on(drive_anomalies, "suspect -> failing")
    .stays(drive_anomalies, "failing", "draining", "off")
    .on(drive_work, "failing -> draining", where="done = 'moving'")
    .on(drive_work, "draining -> off", where="done = 'moved'")
    .on(drive_work, "off -> repaired", where="done = 'repaired'")
    .after("30d", "suspect -> healthy")
    .after("1d", "draining -> failing")
    .after("7d", "repaired -> healthy")
    .rests("healthy", "failing", "off")
    .entering("suspect", command="'notify'")
    .entering("failing", command="'move-data'")
    .entering("off", command="'turn-off'")
)
drive_changes = app.stream("drive_changes", drive, on="services")
drives = app.table("drives", drive, on="services")
drive_commands = app.stream(
    "drive_commands",
    drive_changes.where("command is not null").select(serial="serial", command="command"),
    on="services",
)
drive_alarms = app.stream(
    "drive_alarms",
    drive_changes.where("not legal").select(serial="serial", text="concat(cause, ' in ', state)"),
    on="services",
)
