"""What all clients share, without a broker."""

import logging

from confluent_kafka import KafkaError, KafkaException

from penstock.backbone.client.contact import LOG, Contact, take


class Queue:
    """A client that has these messages ready, and these when it waits."""

    def __init__(self, ready, coming=()):
        self.ready, self.coming, self.waits = list(ready), list(coming), []

    def consume(self, num_messages=1, timeout=-1):
        assert timeout == 0
        taken, self.ready = self.ready[:num_messages], self.ready[num_messages:]
        return taken

    def poll(self, timeout=-1):
        self.waits.append(timeout)
        self.ready, self.coming = self.coming, []
        return self.ready.pop(0) if self.ready else None


def test_messages_that_are_ready_are_taken_without_waiting():
    queue = Queue("abcd")
    assert take(queue, count=3, timeout=9.0) == ["a", "b", "c"]
    assert queue.waits == []


def test_the_first_message_that_comes_ends_the_wait_and_brings_the_others():
    queue = Queue("", "abc")
    assert take(queue, count=9, timeout=0.5) == ["a", "b", "c"]
    assert queue.waits == [0.5]


def test_one_message_is_one():
    assert take(Queue("", "abc"), count=1, timeout=0.5) == ["a"]


def test_nothing_comes():
    assert take(Queue(""), count=9, timeout=0.5) == []


class Cluster:
    def __init__(self):
        self.up, self.asked = False, 0

    def list_topics(self, *, timeout):
        assert 0 < timeout <= 1
        self.asked += 1
        if not self.up:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))


def test_contact_is_lost_until_the_cluster_answers():
    contact, cluster = Contact("host:9092"), Cluster()
    assert contact.trouble(cluster) is None
    assert cluster.asked == 0
    contact.lost(KafkaError(KafkaError._ALL_BROKERS_DOWN))
    trouble = contact.trouble(cluster)
    assert trouble.startswith("no contact with Kafka at host:9092 since ")
    assert contact.trouble(cluster) == trouble
    assert cluster.asked == 1, "the cluster is not asked again at once"


def test_contact_is_back_as_soon_as_it_is_asked_for_and_answered():
    contact, cluster = Contact("host:9092"), Cluster()
    contact.lost(KafkaError(KafkaError._ALL_BROKERS_DOWN))
    cluster.up = True
    assert contact.trouble(cluster) is None


def test_a_message_that_came_means_contact():
    contact, cluster = Contact("host:9092"), Cluster()
    contact.lost(KafkaError(KafkaError._ALL_BROKERS_DOWN))
    contact.kept()
    assert contact.trouble(cluster) is None
    assert cluster.asked == 0


def test_one_broker_of_several_lost_is_not_contact_lost():
    contact, cluster = Contact("host:9092"), Cluster()
    contact.lost(KafkaError(KafkaError._TRANSPORT))
    assert contact.trouble(cluster) is None


def test_the_clients_log_is_silent_until_logging_is_configured(capfd):
    assert LOG.name == "penstock.kafka"
    assert any(isinstance(handler, logging.NullHandler) for handler in LOG.handlers)
