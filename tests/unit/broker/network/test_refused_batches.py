"""What a connection remembers of batches that were refused for now."""

from ottla.broker.network.refused_batches import UNDER_WAY_MAX, RefusedBatches
from ottla.wire.batch import BatchView, Record, build_batch, read_header
from ottla.wire.errors import ErrorCode

HERE = ("orders", 0)
NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER


def batch(base_sequence: int, *, producer_id: int = 7, epoch: int = 0) -> BatchView:
    records = [Record(0, 0, None, b"a", ())]
    return read_header(
        memoryview(build_batch(records, producer_id=producer_id, producer_epoch=epoch, base_sequence=base_sequence))
    )


def test_what_follows_gets_the_same_error():
    refused = RefusedBatches()
    refused.refuse(HERE, batch(10), NOT_LEADER)
    assert refused.code_for(HERE, batch(11)) is NOT_LEADER
    assert refused.code_for(HERE, batch(10)) is None, "it is sent again"
    assert refused.code_for(HERE, batch(9)) is None
    assert refused.code_for(HERE, batch(11, epoch=1)) is None
    assert refused.code_for(HERE, batch(11, producer_id=8)) is None
    assert refused.code_for(("orders", 1), batch(11)) is None


def test_only_what_can_have_been_under_way():
    refused = RefusedBatches()
    refused.refuse(HERE, batch(0), NOT_LEADER)
    for number in range(1, UNDER_WAY_MAX):
        assert refused.code_for(HERE, batch(number)) is NOT_LEADER
        refused.refuse(HERE, batch(number), NOT_LEADER)
    assert refused.code_for(HERE, batch(UNDER_WAY_MAX)) is None
    assert not refused


def test_what_was_accepted_is_forgotten():
    refused = RefusedBatches()
    refused.refuse(HERE, batch(3), NOT_LEADER)
    refused.forget(HERE, batch(3))
    assert refused.code_for(HERE, batch(4)) is None
    assert not refused
