"""Jobs: functions over all there is, which Spark runs again and again.

``App.job`` declares one; its function may take a `JobRun`.
"""

from penstock.core.graph.job import JobRun

__all__ = ["JobRun"]
