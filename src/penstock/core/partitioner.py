"""Which partition a key belongs to: the rule of Kafka's producers, so that all writers agree."""

__all__ = ["murmur2", "partition_of"]

_SEED = 0x9747B28C
_FACTOR = 0x5BD1E995
_SHIFT = 24
_WORD = 0xFFFFFFFF
_POSITIVE = 0x7FFFFFFF


def murmur2(data: bytes) -> int:
    """Return the 32-bit MurmurHash2 of some bytes, not negative.

    Java's producers have the same bits as a signed number.
    """
    length = len(data)
    found = _SEED ^ length
    whole = length - length % 4
    for start in range(0, whole, 4):
        word = int.from_bytes(data[start : start + 4], "little") * _FACTOR & _WORD
        word = (word ^ word >> _SHIFT) * _FACTOR & _WORD
        found = found * _FACTOR & _WORD ^ word
    if rest := data[whole:]:
        found = (found ^ int.from_bytes(rest, "little")) * _FACTOR & _WORD
    found = (found ^ found >> 13) * _FACTOR & _WORD
    return found ^ found >> 15


def partition_of(key: bytes, partitions: int) -> int:
    """Return the number of the partition that takes the records of a key."""
    return (murmur2(key) & _POSITIVE) % partitions
