"""Scores over HTTP: the time limit, and the model on this side where nobody answers."""

import socket
import threading
from datetime import timedelta
from time import monotonic

import msgspec
import pytest
from apps.anomaly.evidence.asking import asked
from apps.anomaly.remote import RemoteScores
from apps.anomaly.scoreservice import Scored, ToScore, scored
from apps.anomaly.scoring import MODEL, score
from tests.devicefleet import model

from penstock.machine.ports import free_ports
from penstock.models import Served, sealed

LEARNT = model()
HOT = ToScore("a", "server", {"machine.celsius.level": 90.0})
HERE = scored(Served(3, LEARNT), HOT)
SOON = timedelta(milliseconds=300)


def test_a_score_is_that_of_the_definition_with_its_version():
    found = score(LEARNT, "server", HOT.features)
    assert (HERE.score, HERE.contributions) == (found.value, found.contributions)
    assert (HERE.model_version, HERE.threshold) == (3, LEARNT.threshold)


def test_without_a_model_or_of_a_kind_that_it_does_not_know_there_is_no_score():
    assert scored(None, HOT) == Scored(None)
    assert scored(Served(3, LEARNT), ToScore("a", "toaster", {})).score is None


@pytest.fixture
def mute():
    """A server that takes every connection and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        kept = []

        def take():
            try:
                while True:
                    kept.append(server.accept()[0])
            except OSError:
                return

        threading.Thread(target=take, daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
        for each in kept:
            each.close()


def test_a_service_that_says_nothing_is_not_waited_for_and_then_left_alone(mute):
    now = [0.0]
    with RemoteScores(f"http://127.0.0.1:{mute}", within=SOON, clock=lambda: now[0]) as remote:
        remote.learn([sealed(MODEL, 3, LEARNT)])
        began = monotonic()
        assert remote.score(HOT) == HERE
        assert monotonic() - began < 5
        first = remote.degraded
        assert first.why
        began = monotonic()
        for _ in range(1_000):
            assert remote.score(HOT) == HERE
        assert monotonic() - began < 1_000 * SOON.total_seconds() / 2  # it was not asked
        now[0] += 6.0
        assert remote.score(HOT) == HERE
        assert remote.degraded.since == first.since


def test_nobody_there_and_no_model_on_this_side_gives_no_score_and_says_so():
    with RemoteScores(f"http://127.0.0.1:{free_ports(1)[0]}", within=SOON) as remote:
        assert remote.score(HOT) == Scored(None)
        assert remote.degraded is not None
        remote.learn([sealed(MODEL, 3, LEARNT)])
        assert remote.score(HOT) == HERE


def test_whoever_asks_is_told_who_answered_and_whether_the_scores_are_the_same():
    row = {"device": "a", "kind": "server", "features": HOT.features, "model_version": 3}
    topics = {
        "model_versions": [msgspec.to_builtins(sealed(MODEL, 3, LEARNT))],
        "samples": [row | {"score": HERE.score}, row | {"score": 0.25}, row | {"score": None}],
    }
    url = f"http://127.0.0.1:{free_ports(1)[0]}"
    lines = list(asked(url, most=9, tail=lambda topic, **_: topics[topic]))
    assert lines[0] == "2 samples: the service answered for 0, this side for 2"
    assert lines[1].startswith("degraded since ")
    assert lines[2] == "2 were scored by the same version before: 1 the same to the last bit"
