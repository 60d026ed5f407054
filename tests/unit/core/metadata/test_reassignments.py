from typing import Any

from ottla.wire.errors import ErrorCode
from ottla.wire.types.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from ottla.wire.types.list_partition_reassignments import ListPartitionReassignmentsRequest
from tests.unit.core.metadata.cluster import Cluster


def reassign(
    cluster: Cluster, name: str, *wanted: tuple[int, tuple[int, ...] | None], may_resize: bool = True, **overrides: Any
) -> Any:
    kind = AlterPartitionReassignmentsRequest
    partitions = tuple(kind.ReassignablePartition(number, replicas) for number, replicas in wanted)
    return cluster.submit(kind(60_000, may_resize, (kind.ReassignableTopic(name, partitions),)), **overrides)


def answers(reply: Any) -> list[tuple[int, str | None]]:
    return [(each.error_code, each.error_message) for topic in reply.responses for each in topic.partitions]


def partition(cluster: Cluster, name: str, number: int = 0) -> Any:
    found = cluster.image.partition(name, number)
    assert found is not None
    return found


def ongoing(cluster: Cluster) -> Any:
    return cluster.submit(ListPartitionReassignmentsRequest(60_000, None)).topics


def test_the_present_replicas_are_no_change(cluster: Cluster):
    cluster.create("there")
    end_offset = cluster.end_offset
    reply = reassign(cluster, "there", (0, (1,)))
    assert (reply.error_code, reply.error_message, answers(reply)) == (0, None, [(0, None)])
    assert cluster.end_offset == end_offset
    assert ongoing(cluster) == ()


def test_nothing_can_be_called_back_that_is_not_on_its_way(cluster: Cluster):
    cluster.create("there")
    assert answers(reassign(cluster, "there", (0, None))) == [(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, None)]


def test_what_cannot_be_is_refused_one_by_one(cluster: Cluster):
    cluster.create("there", partitions=3)
    reply = reassign(cluster, "there", (0, (9,)), (1, (1, 1)), (2, ()), (7, (1,)))
    words = "The manual partition assignment includes "
    assert answers(reply) == [
        (39, words + "broker 9, but no such broker is registered."),
        (39, words + "the broker 1 more than once."),
        (39, words + "an empty replica list."),
        (3, "Unable to find partition there:7."),
    ]
    assert answers(reassign(cluster, "missing", (0, (1,)))) == [(3, "Unable to find a topic named missing.")]


def test_a_partition_cannot_be_sent_to_two_places_at_once(three: Cluster):
    three.create("there", replicas=2)
    before = partition(three, "there")
    other = next(broker for broker in (1, 2, 3) if broker not in before.replicas)
    reply = reassign(three, "there", (0, (other,)), (0, before.replicas[::-1]), (1, (other,)))
    assert [code for code, _ in answers(reply)] == [ErrorCode.INVALID_REQUEST] * 2 + [3]
    assert partition(three, "there") == before
    three.check_law()


def test_the_number_of_replicas_can_be_held(three: Cluster):
    three.create("there", replicas=2)
    reply = reassign(three, "there", (0, (1, 2, 3)), may_resize=False)
    assert answers(reply) == [(38, "The replication factor is changed from 2 to 3")]
    assert not reply.allow_replication_factor_change


def test_new_replicas_come_before_old_ones_go(three: Cluster):
    three.create("there", replicas=1)
    (old,) = partition(three, "there").replicas
    new = next(broker for broker in (1, 2, 3) if broker != old)
    assert answers(reassign(three, "there", (0, (new,)))) == [(0, None)]
    moving = partition(three, "there")
    assert (moving.replicas, moving.adding_replicas, moving.removing_replicas) == ((new, old), (new,), (old,))
    assert (moving.isr, moving.leader) == ((old,), old)
    (topic,) = ongoing(three)
    assert (topic.name, topic.partitions[0].replicas) == ("there", (new, old))


def test_a_partition_on_its_way_can_be_called_back(three: Cluster):
    three.create("there", replicas=1)
    before = partition(three, "there")
    new = next(broker for broker in (1, 2, 3) if broker not in before.replicas)
    reassign(three, "there", (0, (new,)))
    assert answers(reassign(three, "there", (0, None))) == [(0, None)]
    after = partition(three, "there")
    assert (after.replicas, after.isr, after.leader, after.directories) == (
        before.replicas,
        before.isr,
        before.leader,
        before.directories,
    )
    assert not after.is_reassigning


def test_it_is_done_at_once_if_nobody_must_catch_up(three: Cluster):
    three.create("there", replicas=3)
    before = partition(three, "there")
    kept = before.replicas[1]
    assert answers(reassign(three, "there", (0, (kept,)))) == [(0, None)]
    after = partition(three, "there")
    assert (after.replicas, after.isr, after.leader) == ((kept,), (kept,), kept)
    assert after.leader_epoch == before.leader_epoch + 1
    assert after.directories == (before.directory_of(kept),)
    assert not after.is_reassigning


def test_another_order_changes_the_preferred_leader_only(three: Cluster):
    three.create("there", replicas=3)
    before = partition(three, "there")
    reassign(three, "there", (0, before.replicas[::-1]))
    after = partition(three, "there")
    assert (after.replicas, after.leader, after.leader_epoch) == (
        before.replicas[::-1],
        before.leader,
        before.leader_epoch,
    )
    assert after.directories == before.directories[::-1]


def test_a_partition_on_its_way_can_be_sent_elsewhere(three: Cluster):
    three.create("there", replicas=1)
    (old,) = partition(three, "there").replicas
    first, second = (broker for broker in (1, 2, 3) if broker != old)
    reassign(three, "there", (0, (first,)))
    assert answers(reassign(three, "there", (0, (second,)))) == [(0, None)]
    moving = partition(three, "there")
    assert (moving.adding_replicas, moving.removing_replicas) == ((second,), tuple(sorted((old, first))))
    three.in_sync("there", old, second)
    after = partition(three, "there")
    assert (after.replicas, after.isr, after.leader) == ((second,), (second,), second)


def test_a_partition_on_its_way_can_be_sent_back(three: Cluster):
    three.create("there", replicas=1)
    before = partition(three, "there")
    new = next(broker for broker in (1, 2, 3) if broker not in before.replicas)
    reassign(three, "there", (0, (new,)))
    assert answers(reassign(three, "there", (0, before.replicas))) == [(0, None)]
    after = partition(three, "there")
    assert (after.replicas, after.isr, after.is_reassigning) == (before.replicas, before.isr, False)


def test_a_replica_that_was_to_go_stays_if_it_is_asked_for(three: Cluster):
    three.create("there", replicas=1)
    (old,) = partition(three, "there").replicas
    new = next(broker for broker in (1, 2, 3) if broker != old)
    reassign(three, "there", (0, (new,)))
    assert answers(reassign(three, "there", (0, (new, old)))) == [(0, None)]
    moving = partition(three, "there")
    assert (moving.replicas, moving.adding_replicas, moving.removing_replicas) == ((new, old), (new,), ())
    three.in_sync("there", old, new)
    after = partition(three, "there")
    assert (set(after.replicas), after.leader, after.is_reassigning) == ({old, new}, old, False)


def test_the_number_of_replicas_held_is_that_of_the_reassignment_under_way(three: Cluster):
    three.create("there", replicas=1)
    (old,) = partition(three, "there").replicas
    first, second = (broker for broker in (1, 2, 3) if broker != old)
    reassign(three, "there", (0, (first, second)))
    reply = reassign(three, "there", (0, (old,)), may_resize=False)
    assert answers(reply) == [(38, "The replication factor is changed from 2 to 1")]
    assert answers(reassign(three, "there", (0, (old, second)), may_resize=False)) == [(0, None)]


def gone(three: Cluster, **configs: str) -> tuple[int, int]:
    """A partition on its way whose old replica has died when the first new one was in sync."""
    three.create("there", replicas=1, **configs)
    (old,) = partition(three, "there").replicas
    first, second = (broker for broker in (1, 2, 3) if broker != old)
    reassign(three, "there", (0, (first, second)))
    three.in_sync("there", old, first)
    three.heartbeat(old, want_fence=True)
    assert partition(three, "there").isr == (first,)
    return old, first


def test_calling_back_must_not_lose_what_only_the_new_replicas_have(three: Cluster):
    gone(three)
    (answer,) = answers(reassign(three, "there", (0, None)))
    assert answer == (
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "Unable to revert partition assignment for there:0 because it would require an unclean leader election.",
    )
    assert partition(three, "there").is_reassigning


def test_calling_back_may_lose_records_where_the_topic_allows_it(three: Cluster):
    old, _ = gone(three, unclean_leader_election_enable="true")
    assert answers(reassign(three, "there", (0, None))) == [(0, None)]
    after = partition(three, "there")
    assert (after.replicas, after.isr, after.leader, after.is_reassigning) == ((old,), (old,), -1, False)


def test_one_that_comes_takes_the_place_of_one_that_goes(three: Cluster):
    """Then a replica that lags, and stays, holds nothing up."""
    three.create("there", replicas=2)
    first, second = partition(three, "there").replicas
    third = next(broker for broker in (1, 2, 3) if broker not in (first, second))
    three.in_sync("there", first)
    reassign(three, "there", (0, (second, third)))
    assert partition(three, "there").removing_replicas == (first,)
    three.in_sync("there", first, third)
    after = partition(three, "there")
    assert (after.replicas, after.isr, after.leader) == ((second, third), (third,), third)


def test_one_that_was_to_come_is_not_waited_for_when_it_is_not_wanted_any_more(three: Cluster):
    three.create("there", replicas=2)
    first, second = partition(three, "there").replicas
    third = next(broker for broker in (1, 2, 3) if broker not in (first, second))
    reassign(three, "there", (0, (third,)))
    assert answers(reassign(three, "there", (0, (second,)))) == [(0, None)]
    after = partition(three, "there")
    assert (after.replicas, after.isr, after.is_reassigning) == ((second,), (second,), False)


def test_all_that_stay_must_be_in_sync_before_one_goes(three: Cluster):
    three.create("there", replicas=3)
    first, second, third = partition(three, "there").replicas
    three.in_sync("there", first, third)
    reassign(three, "there", (0, (first, second)))
    assert partition(three, "there").removing_replicas == (third,)
    (topic,) = ongoing(three)
    assert topic.partitions[0].removing_replicas == (third,)
    three.in_sync("there", first, second, third)
    assert partition(three, "there").replicas == (first, second)
    assert ongoing(three) == ()


def test_an_empty_request_is_an_empty_answer(cluster: Cluster):
    reply = cluster.submit(AlterPartitionReassignmentsRequest())
    assert (reply.error_code, reply.error_message, reply.responses) == (0, "", ())


def test_reassigning_needs_the_right_to_alter_the_cluster(cluster: Cluster):
    cluster.create("there")
    reply = reassign(cluster, "there", (0, (1,)), authorize=lambda *asked: False)
    assert reply.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert {each.error_code for topic in reply.responses for each in topic.partitions} == {reply.error_code}
