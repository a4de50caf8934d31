"""How every run of the tests begins and reports: a failure is printed as soon as it happens."""

import os
import signal
import sys

import pytest

# Every JVM of a test lives for seconds or a few minutes: the second compiler, which makes a program
# fast that runs for hours, would take more processor time than it gives back. Without it Java keeps
# 48 MB for compiled code, which Spark fills: a thread that throws code away, and compiling it anew,
# were a quarter of the processor time of long Spark tests.
#
# A query of Spark that waits asks Kafka for news a hundred times a second unless told otherwise; a
# program of a test has several, each of which would keep a processor busy.
os.environ.setdefault(
    "JDK_JAVA_OPTIONS",
    "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
    " -Dspark.sql.streaming.pollingDelay=50ms",
)

# Where Python may not keep what it has compiled, as in many containers, each of the hundreds of
# programs that tests start would compile all that it imports: a second and more of processor time.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Servers that start too slowly for every run: `make servers` asks for them.
collect_ignore = [] if os.environ.get("PENSTOCK_SERVERS") else ["servers"]


class Failures:
    """Prints each failure at once, so that a run that is cut off later has still told it."""

    def __init__(self, reporter: pytest.TerminalReporter) -> None:
        self._reporter = reporter

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not report.failed:
            return
        self._reporter.ensure_newline()
        self._reporter.section(f"{report.when} of {report.nodeid}", "_", red=True)
        self._reporter.write_line(report.longreprtext)
        for name, content in report.sections:
            self._reporter.section(name, "-")
            self._reporter.write_line(content.rstrip())
        self._reporter.flush()


def pytest_sessionstart(session: pytest.Session) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # As a shell starts what runs in the background; every program of a test would inherit it.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None:
        session.config.pluginmanager.register(Failures(reporter))
