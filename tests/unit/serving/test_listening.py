"""Where a gateway may listen."""

import pytest

from penstock import App, record
from penstock.core.asking.where import is_loopback
from penstock.core.settings.settings import ServingSettings
from penstock.errors import ConfigurationError
from penstock.machine.ports import free_ports
from penstock.serving.listening import address_of, listen, require_safe


@record(key="device")
class Reading:
    device: str


def refusal(**settings):
    with pytest.raises(ConfigurationError) as raised:
        require_safe(ServingSettings(**settings))
    return raised.value.code


def test_a_gateway_without_tokens_listens_on_loopback_only(tmp_path):
    file = tmp_path / "tokens.toml"
    for host in ("127.0.0.1", "127.8.0.1", "::1", "localhost"):
        assert is_loopback(host)
        require_safe(ServingSettings(host=host))
    for host in ("0.0.0.0", "::", "10.0.0.1", "gateway.example", ""):  # noqa: S104 - what is refused
        assert refusal(host=host) == "serving.open"
        require_safe(ServingSettings(host=host, tokens_file=str(file)))
        require_safe(ServingSettings(host=host, jwks_file=str(file)))


def test_half_of_tls_is_refused(tmp_path):
    assert refusal(tls_key_file="key.pem") == "serving.tls"
    assert refusal(tls_key_file="key.pem", tls_certificate_file="none.pem") == "serving.tls"


def test_each_gateway_has_a_port_of_its_own_and_one_that_is_taken_is_said():
    app = App("plant")
    readings = app.stream("readings", Reading)
    doors = [app.gateway(name, takes=readings) for name in ("one", "two")]
    (port,) = free_ports(1)
    settings = ServingSettings(port=port)
    with listen(app.graph, doors[0], settings) as one, listen(app.graph, doors[1], settings) as two:
        assert address_of(one, settings) == f"http://127.0.0.1:{port}"
        assert two.getsockname()[1] == port + 1
        with pytest.raises(ConfigurationError) as raised:
            listen(app.graph, doors[0], settings)
        assert raised.value.code == "serving.port"
    with listen(app.graph, doors[0], ServingSettings(port=0)) as anywhere:
        assert anywhere.getsockname()[1]
