"""Which partition of an internal topic a group, a transactional id or a share partition belongs to."""

from __future__ import annotations

from functools import lru_cache

__all__ = ["java_hash", "partition_for"]


def java_hash(text: str) -> int:
    """Java's String.hashCode: over UTF-16 units, in 32 bits."""
    units = text.encode("utf-16-be", "surrogatepass")
    total = 0
    for index in range(0, len(units), 2):
        total = (31 * total + (units[index] << 8 | units[index + 1])) & 0xFFFFFFFF
    return total - (1 << 32) if total & 0x80000000 else total


@lru_cache(maxsize=16_384)
def partition_for(name: str, partition_count: int) -> int:
    """The partition of a name, the same as Kafka's, so that either can take over the other's directories."""
    hashed = java_hash(name)
    return (0 if hashed == -(1 << 31) else abs(hashed)) % partition_count
