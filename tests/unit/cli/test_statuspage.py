import urllib.error
import urllib.request

import msgspec
import pytest

from penstock.cli.statuspage import StatusPage
from penstock.core.report import PartReport
from penstock.errors import ConfigurationError
from penstock.machine.ports import free_ports


@pytest.fixture
def port():
    return free_ports(1)[0]


def ask(page, path):
    try:
        with urllib.request.urlopen(page.address + path, timeout=5) as answer:  # noqa: S310 - our own
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def report(state):
    return PartReport(part="count", kind="service", state=state, at=0.0)


def test_metrics_and_health_are_served_and_follow_the_reports(port):
    with StatusPage(port) as page:
        assert page.address == f"http://127.0.0.1:{port}"
        assert ask(page, "/health")[0] == 503
        page.take(report("running"))
        status, body = ask(page, "/health")
        assert (status, msgspec.json.decode(body)["healthy"]) == (200, True)
        page.take(report("degraded"))
        assert ask(page, "/health")[0] == 503
        assert b'penstock_up{part="count",process="0"} 0' in ask(page, "/metrics")[1]
        assert ask(page, "/else")[0] == 404


def test_nothing_is_served_unless_a_port_is_chosen():
    with StatusPage(0) as page:
        page.take(report("running"))
        assert page.address == ""


def test_a_port_that_is_taken_is_told(port):
    with StatusPage(port), pytest.raises(ConfigurationError, match=f"cannot listen on .*{port}"):
        StatusPage(port)
