"""Questions between processes: only who knows the secret is answered, and many at a time."""

import asyncio
import socket
import stat

import pytest

from penstock.core.settings.settings import Secret, ServingSettings
from penstock.errors import ConfigurationError, TransientError
from penstock.machine.peers.host import PeerHost
from penstock.machine.peers.secret import SECRET_FILE, shared_secret
from penstock.machine.peers.visitor import Visitor

SECRET = b"s" * 32


async def shout(question):
    if question == b"slow":
        await asyncio.sleep(0.05)
    return question.upper()


@pytest.fixture
def host():
    with PeerHost(shout, host="127.0.0.1", secret=SECRET) as host:
        yield host


def visit(host, talk, secret=SECRET):
    async def run():
        visitor = await Visitor.connect(f"127.0.0.1:{host.port}", secret)
        try:
            return await talk(visitor)
        finally:
            await visitor.close()

    return asyncio.run(run())


def test_many_questions_of_one_connection_get_each_its_own_answer(host):
    async def talk(visitor):
        words = [b"slow", *(b"w%d" % number for number in range(500))]
        return words, await asyncio.gather(*(visitor.ask(word, seconds=30) for word in words))

    words, answers = visit(host, talk)
    assert answers == [word.upper() for word in words]


def test_who_does_not_know_the_secret_gets_no_answer(host):
    async def talk(visitor):
        raise AssertionError

    with pytest.raises(ConfigurationError) as raised:
        visit(host, talk, secret=b"x" * 32)
    assert raised.value.code == "peer.secret"


def test_what_a_stranger_sends_ends_their_connection_alone(host):
    with socket.create_connection(("127.0.0.1", host.port), timeout=30) as stranger:
        stranger.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" + b"x" * 100)
        assert stranger.recv(65536).startswith(b"penstock/1\n")
        assert stranger.recv(65536) == b""

    async def talk(visitor):
        return await visitor.ask(b"still", seconds=30)

    assert visit(host, talk) == b"STILL"


def test_a_host_that_is_gone_is_said_and_so_is_one_that_is_slow():
    async def talk(visitor):
        with pytest.raises(TransientError) as raised:
            await visitor.ask(b"slow", seconds=0.001)
        assert raised.value.code == "peer.slow"
        mortal.__exit__(None, None, None)
        with pytest.raises(TransientError) as raised:
            await visitor.ask(b"more", seconds=30)
        assert raised.value.code == "peer.gone"

    mortal = PeerHost(shout, host="127.0.0.1", secret=SECRET)
    mortal.__enter__()
    visit(mortal, talk)
    with pytest.raises(TransientError):
        visit(mortal, talk)


def test_the_secret_is_a_setting_or_a_file_for_its_owner_alone(tmp_path):
    home = tmp_path / "home"
    found = shared_secret(ServingSettings(), home)
    assert len(found) == 64
    assert shared_secret(ServingSettings(), home) == found
    assert stat.S_IMODE((home / SECRET_FILE).stat().st_mode) == 0o600
    assert [path.name for path in home.iterdir()] == [SECRET_FILE]
    assert shared_secret(ServingSettings(secret=Secret("a" * 16)), home) == b"a" * 16
    with pytest.raises(ConfigurationError):
        shared_secret(ServingSettings(secret=Secret("short")), home)
