"""Anomaly detection for devices: the closed loop from telemetry to recovery.

::

    messages ──▶ ingest ──▶ telemetry ──▶ scorer ──▶ anomalies ──▶ device ──▶ device_changes
                   │                        ▲  └─▶ samples ─▶ first_model      │
                   │                  model_versions ◀──────────────┘          ▼
                   └──▶ acknowledgements ──▶ Session ◀── orders ◀───────── follow ──▶ notices
                                                └──▶ commands, back to the devices

Devices send messages over sockets, to the ``door``. ``ingest`` takes each once. ``scorer`` scores
one measurement at a time with the newest good version of the model, and only anomalies go on. The
life cycle ``device`` says what follows, and a session for each device sees to it that commands
arrive. Spark trains (``job``), ``drift`` asks for it, and the lake remembers (``audit``). Whoever
asks over HTTP gets a score of ``Scores``. Drives that report once a day have a graph of their own
in ``drives``.
"""

from apps.anomaly.application import app
from apps.anomaly.drives import graph as drives
from apps.anomaly.edges import door
from apps.anomaly.ingest import ingest
from apps.anomaly.scorer import FirstModel, Scorer
from apps.anomaly.scoreservice import Scores
from apps.anomaly.sessions import Push, Session, follow
from apps.anomaly.training import audit, drift, job, tuning
from apps.anomaly.usage import following, learning

__all__ = [
    "FirstModel",
    "Push",
    "Scorer",
    "Scores",
    "Session",
    "app",
    "audit",
    "door",
    "drift",
    "drives",
    "follow",
    "following",
    "ingest",
    "job",
    "learning",
    "tuning",
]
