"""Ways in from outside: sources of lines or records that go onto a stream.

===================  =====================================================================
textfile             a text file, exactly once
tcp                  lines over TCP, from many senders
keyboard             lines that a person types
connector            what a connector implements: it is live, or positioned
lines, ratelimit     bytes cut into lines; the length of each and their speed are bounded
options              options as people write them
intake, outlet       what becomes of an item: record, dead letter, or nothing
live                 runs a live connector: back pressure, once or lost with the process
session, positioned  run a positioned connector: records and position in one transaction
splits, pacing       what to read, when to commit and try again: decisions without I/O
positions            how far each split was read, on a topic of the source
progress             what a source reports while it runs
run                  runs one source of an application
===================  =====================================================================

A connector of your own needs none of these but ``connector``: see ``docs/connectors.md``.
"""

from penstock.connectors.connector import (
    WHOLE,
    Feed,
    Item,
    LiveConnector,
    Position,
    PositionedConnector,
    Reading,
)
from penstock.connectors.keyboard import keyboard
from penstock.connectors.run import run_source
from penstock.connectors.tcp import tcp_lines
from penstock.connectors.textfile import text_file

__all__ = [
    "WHOLE",
    "Feed",
    "Item",
    "LiveConnector",
    "Position",
    "PositionedConnector",
    "Reading",
    "keyboard",
    "run_source",
    "tcp_lines",
    "text_file",
]
