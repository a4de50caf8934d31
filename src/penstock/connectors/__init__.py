"""Ways in from outside: sources whose lines become records on a stream.

==============  ===============================================================
textfile        a text file, exactly once
tcp             lines over TCP, from many senders
keyboard        lines that a person types
connector       the two protocols a connector implements: live, or positioned
lines, pace     bytes cut into lines, their length and their speed bounded
intake, outlet  what becomes of a line: record, dead letter, or nothing
live            runs a live connector: back pressure, once or lost with the process
positioned      runs a positioned connector: records and position in one transaction
progress        what a source says about itself while it runs
run             runs one source of an application
options         options as people write them
==============  ===============================================================
"""

from penstock.connectors.keyboard import keyboard
from penstock.connectors.run import run_source
from penstock.connectors.tcp import tcp_lines
from penstock.connectors.textfile import text_file

__all__ = ["keyboard", "run_source", "tcp_lines", "text_file"]
