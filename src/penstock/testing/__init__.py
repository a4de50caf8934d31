"""The test kit: run an application's services without a broker, and crash them on purpose.

Fixtures for tests that want the real thing (a broker, a Spark session) come with the pytest
plugin in ``penstock.testing.fixtures``. Importing this package needs neither Kafka nor Spark.
"""

from penstock.testing.driver import Driver

__all__ = ["Driver"]
