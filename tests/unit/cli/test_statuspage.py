import urllib.error
import urllib.request
from datetime import UTC, datetime

import msgspec
import pytest

from penstock.cli.statuspage import StatusPage
from penstock.core.status import PartStatus, RunStatus, decode_status
from penstock.errors import ConfigurationError
from penstock.machine.ports import free_ports

AT = datetime(2026, 1, 1, tzinfo=UTC)


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


def status(*states):
    parts = (
        PartStatus(process="0", part="count", kind="service", state=state, since_seconds=1.0)
        for state in states
    )
    return RunStatus(app="plant", command="run", pid=1, started_at=AT, parts=tuple(parts))


def test_metrics_health_and_status_are_served_as_they_are_when_asked(port):
    now = [status()]
    with StatusPage(lambda: now[0], port=port) as page:
        assert page.address == f"http://127.0.0.1:{port}"
        assert ask(page, "/health")[0] == 503
        now[0] = status("running")
        code, body = ask(page, "/health")
        assert (code, msgspec.json.decode(body)["healthy"]) == (200, True)
        now[0] = status("degraded")
        assert ask(page, "/health")[0] == 503
        labels = b'{app="plant",part="count",process="0"}'
        assert b"penstock_up" + labels + b" 0\n" in ask(page, "/metrics")[1]
        assert decode_status(ask(page, "/status")[1]) == now[0]
        assert ask(page, "/health?verbose=1")[0] == 503
        assert ask(page, "/else")[0] == 404


def test_without_a_port_any_free_one_is_taken():
    with StatusPage(status, port=0) as one, StatusPage(status, port=0) as other:
        assert ask(one, "/status")[0] == ask(other, "/status")[0] == 200
        assert one.port != other.port


@pytest.mark.parametrize("wrong", ["taken", "none"])
def test_a_port_that_cannot_be_listened_on_is_told(port, wrong):
    with StatusPage(status, port=port):
        chosen = port if wrong == "taken" else 70_000
        with pytest.raises(ConfigurationError, match=f"cannot listen on .*{chosen}"):
            StatusPage(status, port=chosen)
