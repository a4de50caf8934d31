import socket

from penstock.machine.ports import LOOPBACK, free_ports, port_answers, port_is_free


def test_free_ports_are_different_free_and_below_those_of_outgoing_connections() -> None:
    ports = free_ports(6)
    assert len(set(ports)) == 6
    assert all(port_is_free(port) and 1024 < port < 32768 for port in ports)


def test_a_port_with_a_listener_is_not_free_and_answers() -> None:
    with socket.create_server((LOOPBACK, 0)) as server:
        port = server.getsockname()[1]
        assert not port_is_free(port)
        assert port_answers(port)
    assert port_is_free(port)
    assert not port_answers(port)
