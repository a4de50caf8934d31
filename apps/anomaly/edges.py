"""Where the application meets the world: the door of devices, and who is told of what they do.

=====================  =============================================================================
``ANOMALY_HOST``       where devices connect; a loopback address unless you say otherwise
``ANOMALY_PORT``       and at which port
``ANOMALY_NOTICES``    the directory of the log of notices, as lines of JSON
``ANOMALY_WEBHOOK``    a URL that takes each notice; without it there is the log alone
=====================  =============================================================================
"""

import os

from apps.anomaly.application import app, commands, messages, notices
from apps.anomaly.devices.door import DeviceDoor
from apps.anomaly.webhook import Webhook
from penstock.connectors import json_files

__all__ = ["door"]

door = DeviceDoor(
    host=os.environ.get("ANOMALY_HOST", "127.0.0.1"),
    port=int(os.environ.get("ANOMALY_PORT", "9100")),
)
app.source("door", door, into=messages)
app.sink("to_devices", door.commands, reads=commands)
app.sink(
    "notice_log",
    json_files(os.environ.get("ANOMALY_NOTICES", ".penstock/notices"), every="1s"),
    reads=notices,
)
if url := os.environ.get("ANOMALY_WEBHOOK"):
    app.sink("webhook", Webhook(url), reads=notices)
