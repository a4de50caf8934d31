"""The test kit: runs the services of an application without a broker, and crashes them on purpose.

The pytest plugin in ``penstock.testing.fixtures`` has fixtures with a real broker and a real Spark
session. Importing this package needs neither Kafka nor Spark.
"""

from penstock.testing.driver import Driver
from penstock.testing.trials import try_sink, try_source

__all__ = ["Driver", "try_sink", "try_source"]
