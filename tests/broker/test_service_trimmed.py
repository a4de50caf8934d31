"""Records that retention deletes under a service while it has others in hand."""

import threading
from dataclasses import replace
from types import SimpleNamespace

from penstock import App
from penstock.backbone.log.groups import Groups
from penstock.backbone.topics.topics import Topics

from . import service_worker as kit


def lag(kafka, group):
    return sum(found.lag for found in Groups(kafka).lag(group).values())


def test_records_that_were_fetched_before_a_gap_are_handled_and_not_skipped(kafka, topic):
    app = App(topic.name("app"))
    words = app.stream(f"{app.name}.words", kit.Word, partitions=1)
    begun, trimmed, handled = threading.Event(), threading.Event(), []

    @app.service(reads=words)
    def note(word: kit.Word) -> None:
        begun.set()
        assert trimmed.wait(kit.PATIENCE)
        threading.Event().wait(0.01)  # slow, so that records wait in the client all the time
        handled.append(int(word.word.partition("-")[0]))

    Topics(kafka).declare(app.graph.topics())
    wired = SimpleNamespace(app=app, words=words)
    kit.send_words(kafka, wired, [f"{number}-{'x' * 10_000}" for number in range(1000)])
    settings = kit.SETTINGS
    # The client holds little and gives odd numbers: the news of the gap comes with records.
    few = replace(settings.services, on_trimmed="skip", poll_batch=37, queued_bytes=1 << 20)
    with kit.InThread(kafka, wired, "note", settings=replace(settings, services=few)) as running:
        assert begun.wait(kit.PATIENCE)
        Topics(kafka).trim(words.topic.name, {0: 900})
        trimmed.set()
        kit.eventually(lambda: handled and handled[-1] == 999, what="the last word")
        kit.eventually(lambda: lag(kafka, f"{app.name}.note") == 0, what="no lag")
    last = running.last("note")
    assert handled == sorted(set(handled))
    assert last.metrics["skipped_offsets_total"] == 1000 - len(handled) > 0
    assert last.counts.passed == len(handled)
