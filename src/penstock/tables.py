"""Tables that a service reads: whole on every worker, or change by change.

``broadcast`` reads a table whole, and ``Rows`` are its rows. ``Change`` says what a row was before.
"""

from penstock.core.graph.changes import Change
from penstock.core.graph.rows import Rows
from penstock.core.operators.broadcast import broadcast

__all__ = ["Change", "Rows", "broadcast"]
