"""What other releases of Kafka have written is read, too."""

from ottla.wire.keyed import KeyedRecord, decode_keyed
from ottla.wire.types.group_classic import LegacyOffsetCommitKey, LegacyOffsetCommitValue, OffsetCommitKey
from tests.unit.core.groups.offsets.bench import Bench, core


def test_the_oldest_keys_name_the_same_offsets():
    fresh, table, _ = core()
    old = KeyedRecord(LegacyOffsetCommitKey("g", "orders", 0), 0, LegacyOffsetCommitValue(5, "m", 77), 0)
    fresh.replay(old, 3, -1, -1)
    assert fresh.hard_state() == {("offsets", ("committed", "g", "orders", 0)): (5, -1, "m", 77, -1, bytes(16), 3)}
    assert table.get("g") is not None
    fresh.replay(KeyedRecord(LegacyOffsetCommitKey("g", "orders", 0), 0, None, -1), 4, -1, -1)
    assert fresh.hard_state() == {}


def test_a_tombstone_for_what_is_not_there_is_harmless():
    fresh, table, _ = core()
    fresh.replay(KeyedRecord(OffsetCommitKey("g", "orders", 0), 0, None, -1), 0, -1, -1)
    assert (fresh.hard_state(), table.get("g")) == ({}, None)


def test_values_of_all_versions_are_read():
    key = bytes.fromhex("0001 0001 67 0001 74 00000000")
    values = {
        0: "0000 0000000000000005 0001 6d 000000000000004d",
        1: "0001 0000000000000005 0001 6d 000000000000004d 0000000000000063",
        2: "0002 0000000000000005 0001 6d 000000000000004d",
        3: "0003 0000000000000005 00000002 0001 6d 000000000000004d",
        4: "0004 0000000000000005 00000002 02 6d 000000000000004d 00",
    }
    for version, value in values.items():
        fresh, _, _ = core()
        fresh.replay(decode_keyed("__consumer_offsets", key, bytes.fromhex(value)), 0, -1, -1)
        (stored,) = fresh.hard_state().values()
        epoch = 2 if version >= 3 else -1
        assert stored == (5, epoch, "m", 77, 99 if version == 1 else -1, bytes(16), 0)


def test_offsets_of_a_group_that_is_there_do_not_replace_it(bench: Bench):
    group = bench.group("g")
    bench.commit("g", ("orders", 0, 1))
    assert bench.table.get("g") is group


def test_nothing_is_parked_here(bench: Bench):
    assert list(bench.core.unloaded()) == []
