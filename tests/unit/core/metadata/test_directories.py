from ottla.core.metadata.uuids import LOST, MIGRATING, UNASSIGNED
from ottla.wire.errors import ErrorCode
from ottla.wire.types.assign_replicas_to_dirs import AssignReplicasToDirsRequest
from tests.unit.core.metadata.cluster import Cluster, uuid

ONE, TWO = uuid(1), uuid(2)


def assign(
    cluster: Cluster, directory: bytes, topic_id: bytes, *partitions: int, **fields: int
) -> AssignReplicasToDirsRequest:
    kind = AssignReplicasToDirsRequest
    topics = (kind.TopicData(topic_id, tuple(map(kind.PartitionData, partitions))),)
    fields.setdefault("broker_epoch", cluster.image.brokers[1].epoch)
    return kind(fields.get("broker_id", 1), fields["broker_epoch"], (kind.DirectoryData(directory, topics),))


def codes(cluster: Cluster, request: AssignReplicasToDirsRequest) -> list[int]:
    reply = cluster.submit(request)
    assert reply.error_code == 0
    return [
        each.error_code for directory in reply.directories for topic in directory.topics for each in topic.partitions
    ]


def test_a_broker_with_several_directories_says_where_replicas_are(empty_cluster: Cluster):
    cluster = empty_cluster.with_brokers(1, log_dirs=(ONE, TWO))
    topic_id = cluster.create("orders", 2)
    partitions = cluster.image.topics_by_id[topic_id].partitions
    assert [each.directories for each in partitions.values()] == [(UNASSIGNED,), (UNASSIGNED,)]
    assert codes(cluster, assign(cluster, TWO, topic_id, 0, 1)) == [0, 0]
    partitions = cluster.image.topics_by_id[topic_id].partitions
    assert [(each.directories, each.leader, each.leader_epoch) for each in partitions.values()] == [((TWO,), 1, 0)] * 2


def test_reserved_ids_are_those_of_apache_kafka(cluster: Cluster):
    """As its metadata log has them: in this order 0, 1 and 2."""
    assert [int.from_bytes(each, "big") for each in (MIGRATING, UNASSIGNED, LOST)] == [0, 1, 2]
    broker = cluster.image.brokers[1]
    assert [broker.has_online_dir(each) for each in (MIGRATING, UNASSIGNED, LOST)] == [True, True, False]


def test_to_say_it_again_changes_nothing(empty_cluster: Cluster):
    cluster = empty_cluster.with_brokers(1, log_dirs=(ONE, TWO))
    topic_id = cluster.create("orders")
    codes(cluster, assign(cluster, ONE, topic_id, 0))
    assert cluster.ask(assign(cluster, ONE, topic_id, 0)).records == ()


def test_a_directory_that_fails_takes_what_is_assigned_to_it(empty_cluster: Cluster):
    cluster = empty_cluster.with_brokers(1, log_dirs=(ONE, TWO))
    topic_id = cluster.create("orders", 2)
    codes(cluster, assign(cluster, ONE, topic_id, 0))
    codes(cluster, assign(cluster, TWO, topic_id, 1))
    cluster.heartbeat(1, offline_log_dirs=(TWO,))
    assert [each.leader for each in cluster.image.topics_by_id[topic_id].partitions.values()] == [1, -1]


def test_a_replica_in_a_directory_that_has_failed_leaves_the_isr(empty_cluster: Cluster):
    cluster = empty_cluster.with_brokers(1, log_dirs=(ONE, TWO)).with_brokers(2)
    topic_id = cluster.create("orders", 1, 2)
    cluster.heartbeat(1, offline_log_dirs=(TWO,))
    assert set(cluster.image.topics_by_id[topic_id].partitions[0].isr) == {1, 2}  # not known yet where it is
    assert codes(cluster, assign(cluster, TWO, topic_id, 0)) == [0]
    partition = cluster.image.topics_by_id[topic_id].partitions[0]
    assert (partition.isr, partition.leader, partition.directory_of(1)) == ((2,), 2, TWO)


def test_what_cannot_be_assigned(three: Cluster):
    topic_id = three.create("orders")
    replica = three.image.topics_by_id[topic_id].partitions[0].replicas[0]
    other = next(broker_id for broker_id in (1, 2, 3) if broker_id != replica)
    epoch = three.image.brokers[other].epoch
    elsewhere = assign(three, ONE, topic_id, 0, broker_id=other, broker_epoch=epoch)
    assert codes(three, elsewhere) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert codes(three, assign(three, ONE, topic_id, 7)) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert codes(three, assign(three, ONE, uuid(99), 0)) == [ErrorCode.UNKNOWN_TOPIC_ID]


def test_a_stale_broker_assigns_nothing(cluster: Cluster):
    topic_id = cluster.create("orders")
    result = cluster.ask(assign(cluster, ONE, topic_id, 0, broker_epoch=0))
    assert ErrorCode(result.reply.error_code) is ErrorCode.STALE_BROKER_EPOCH
    assert result.records == ()
