import pytest

from penstock.core.partitioner import murmur2, partition_of

VECTORS = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}
"""Keys and hashes from the tests of Kafka's own producer, which has them as signed numbers."""


@pytest.mark.parametrize("key", VECTORS)
def test_a_key_has_the_hash_that_kafka_gives_it(key):
    assert murmur2(key) == VECTORS[key] % (1 << 32)
    assert partition_of(key, 7) == (VECTORS[key] & 0x7FFFFFFF) % 7
