"""Anomaly detection for devices: the closed loop from telemetry to recovery.

::

    messages ──▶ ingest ──▶ telemetry ──▶ scorer ──▶ anomalies ──▶ device ──▶ device_changes
                   │                        ▲  └─▶ samples ─▶ first_model      │
                   │                  model_versions ◀──────────────┘          ▼
                   └──▶ acknowledgements ──▶ Session ◀── orders ◀───────── follow ──▶ notices
                                                └──▶ commands, back to the devices

Devices send messages. ``ingest`` takes each once. ``scorer`` scores one measurement at a time with
the newest good version of the model, and only anomalies go on. The life cycle ``device`` says what
follows, and a session for each device sees to it that commands arrive. Drives that report once a
day have a graph of their own in ``drives``.
"""

from apps.anomaly.application import app
from apps.anomaly.drives import graph as drives
from apps.anomaly.ingest import ingest
from apps.anomaly.scorer import FirstModel, Scorer
from apps.anomaly.sessions import Session, follow

__all__ = ["FirstModel", "Scorer", "Session", "app", "drives", "follow", "ingest"]
