"""The application and its data: every stream and table, in the order in which records go."""

from apps.anomaly.records import (
    Acknowledgement,
    Anomaly,
    Command,
    Decision,
    DeviceAlarm,
    DriftAlarm,
    Message,
    ModelAlarm,
    Notice,
    Sample,
    Telemetry,
)
from penstock import App, EventTime
from penstock.models import ModelVersion

__all__ = [
    "acknowledgements",
    "anomalies",
    "app",
    "commands",
    "decisions",
    "device_alarms",
    "drift_alarms",
    "messages",
    "model_alarms",
    "model_versions",
    "notices",
    "samples",
    "telemetry",
]

app = App("anomaly")

RARE = EventTime(disorder="5s", idle_after="10s", closes_after="30s", ahead="10m")
"""Of streams that say nothing for long: time goes on without them."""

messages = app.stream("messages", Message)
telemetry = app.stream("telemetry", Telemetry, event_time=EventTime(disorder="30s", ahead="10m"))
acknowledgements = app.stream("acknowledgements", Acknowledgement, event_time=RARE)

samples = app.stream("samples", Sample, event_time=EventTime(disorder="30s", ahead="10m"))
model_versions = app.table("model_versions", ModelVersion)
model_alarms = app.stream("model_alarms", ModelAlarm)
drift_alarms = app.stream("drift_alarms", DriftAlarm)
decisions = app.stream("decisions", Decision)

anomalies = app.stream("anomalies", Anomaly, event_time=RARE)
commands = app.stream("commands", Command)
notices = app.stream("notices", Notice)
device_alarms = app.stream("device_alarms", DeviceAlarm)
