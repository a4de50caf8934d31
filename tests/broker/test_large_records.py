"""Records that are larger than what their dead letter may be: cut, told, and passed by."""

import confluent_kafka
import pytest

from penstock.backbone.log.reader import LogReader
from penstock.testing.deadletters import read_dead_letter

from . import service_worker as kit


@pytest.mark.parametrize("packed", [True, False])
def test_a_record_that_no_dead_letter_can_hold_whole_is_cut_and_passed_by(kafka, topic, packed):
    app = kit.declared(topic.name("app"), kafka)
    largest = kafka.settings.max_message_bytes
    size = largest + (10 << 20) if packed else largest - 300
    value = b'{"word": "%s"' % (b"x" * size)  # 45 kB on the log, or all that a broker takes
    settings = {"message.max.bytes": 2 * largest} | ({"compression.type": "zstd"} if packed else {})
    producer = confluent_kafka.Producer({"bootstrap.servers": kafka.bootstrap, **settings})
    for key, each in ((b"a", b'{"word":"a"}'), (b"x", value), (b"b", b'{"word":"b"}')):
        producer.produce(app.words.topic.name, each, key, 0)
    assert producer.flush(60) == 0
    with kit.InThread(kafka, app, "count") as running:
        kit.eventually(
            lambda: running.error or running.has("count", passed=2, dead_lettered=1),
            what="what comes behind the large record",
        )
    assert running.error is None
    found = [each for batch in LogReader(kafka).batches(app.dead_letters) for each in batch]
    letters = [each for each in map(read_dead_letter, found) if each.key == b"x"]
    assert [(each.code, value.startswith(each.value)) for each in letters] == [
        ("data.too-large", True)
    ]
    assert largest - 10_000 < len(letters[0].value) < largest
