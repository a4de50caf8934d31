"""The test kit: runs the services of an application without a broker, and crashes them on purpose.

The pytest plugin in ``penstock.testing.fixtures`` has fixtures with a real broker and a real Spark
session. Importing this package needs neither Kafka nor Spark.
"""

from penstock.testing.driver import Driver

__all__ = ["Driver"]
