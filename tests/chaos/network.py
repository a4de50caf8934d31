"""Networks of their own for workers, so that one can be cut off while the others go on.

A worker knows its broker by the address that the broker tells, on loopback. So loopback is led
elsewhere: over a pair of virtual interfaces that can be taken down, or to whoever listens there.
Root only; everything made here goes with the block that asked for it.
"""

import ctypes
import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Link", "Unavailable", "linked", "listening", "secluded"]

LOOPBACK = "127.0.0.1"
_NEW_NETWORK = 0x40000000
"""CLONE_NEWNET: it is the network that a thread enters."""
_SECONDS = 10.0


class Unavailable(Exception):  # noqa: N818 - not an error: the scenario is left out
    """This machine cannot make the fault."""


@dataclass(frozen=True, slots=True)
class Link:
    """The only way from a namespace to the broker."""

    namespace: str
    interface: str

    def cut(self) -> None:
        """Lose every packet, both ways, and tell nobody."""
        _ip("link", "set", self.interface, "down")

    def mend(self) -> None:
        """Let packets through again."""
        _ip("link", "set", self.interface, "up")


def inside(namespace: str) -> tuple[str, ...]:
    """Return what comes before a command that is to run in the namespace."""
    return ("ip", "netns", "exec", namespace)


@contextmanager
def secluded() -> Iterator[str]:
    """Give the name of a namespace with a loopback address and nothing else."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        raise Unavailable("a network namespace needs root and the program ip")
    name = f"penstock-{os.getpid()}"
    try:
        _ip("netns", "add", name)
    except subprocess.CalledProcessError as error:
        raise Unavailable(f"no network namespace: {error.stderr.decode().strip()}") from error
    try:
        _ip("-n", name, "link", "set", "lo", "up")
        yield name
    finally:
        _ip("netns", "delete", name)


@contextmanager
def linked() -> Iterator[Link]:
    """Give a namespace whose loopback address is this machine's, over a link that can be cut."""
    with secluded() as name:
        number = os.getpid()
        link = Link(name, f"pst{number}a")
        far, network = f"pst{number}b", f"10.213.{number % 256}"
        try:
            _ip("link", "add", link.interface, "type", "veth", "peer", "name", far, "netns", name)
        except subprocess.CalledProcessError as error:
            raise Unavailable(f"no virtual link: {error.stderr.decode().strip()}") from error
        try:
            _ip("address", "add", f"{network}.1/30", "dev", link.interface)
            _ip("-n", name, "address", "add", f"{network}.2/30", "dev", far)
            link.mend()
            _ip("-n", name, "link", "set", far, "up")
            _ip("-n", name, "address", "delete", f"{LOOPBACK}/8", "dev", "lo")
            _ip("-n", name, "route", "add", LOOPBACK, "via", f"{network}.1")
            # Packets from and to loopback addresses are dropped on any other interface by default.
            setting = "/proc/sys/net/ipv4/conf/{}/route_localnet"
            Path(setting.format(link.interface)).write_text("1")
            write = ("sh", "-c", f"echo 1 > {setting.format(far)}")
            subprocess.run([*inside(name), *write], check=True, timeout=_SECONDS)
            yield link
        finally:
            _ip("link", "delete", link.interface)


def listening(namespace: str, port: int) -> socket.socket:
    """Return a socket that listens on loopback in the namespace, and is read out here."""
    made: list[socket.socket] = []
    entering = threading.Thread(target=lambda: made.append(_listen(namespace, port)))
    entering.start()
    entering.join(_SECONDS)
    if not made:
        raise Unavailable(f"nobody can listen in the namespace {namespace}")
    return made[0]


def _listen(namespace: str, port: int) -> socket.socket:
    """Enter the namespace for good, with this thread alone, and listen there."""
    with Path("/run/netns", namespace).open("rb") as file:
        library = ctypes.CDLL(None, use_errno=True)
        if library.setns(file.fileno(), _NEW_NETWORK):
            raise OSError(ctypes.get_errno(), "setns")
    return socket.create_server((LOOPBACK, port), backlog=64)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, timeout=_SECONDS)
