"""Life cycles: the states that each key goes through, declared as a value.

``lifecycle`` begins a declaration; give it to ``app.stream`` or ``app.table``.
"""

from penstock.core.lifecycles.lifecycle import lifecycle

__all__ = ["lifecycle"]
