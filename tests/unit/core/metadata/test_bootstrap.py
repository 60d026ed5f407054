import pytest

from ottla.core.metadata import features
from ottla.core.metadata.bootstrap import bootstrap_records
from ottla.core.metadata.context import Result
from ottla.core.metadata.fault import MetadataFault
from ottla.core.metadata.image import BROKER
from ottla.wire.keyed import Versioned
from ottla.wire.types.cluster_metadata import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    TopicRecord,
)
from tests.unit.core.metadata.cluster import Cluster, uuid


def names(result: Result) -> list[str]:
    return [getattr(record.message, "name", None) or type(record.message).__name__ for record in result.records]


def test_a_new_cluster_begins_with_its_features_in_one_transaction():
    cluster = Cluster(bootstrap=False)
    result = cluster.activate()
    assert names(result) == [
        "Bootstrap records",
        "metadata.version",
        "eligible.leader.replicas.version",
        "group.version",
        "share.version",
        "streams.version",
        "transaction.version",
        "min.insync.replicas",
        "EndTransactionRecord",
    ]
    assert cluster.image.metadata_version == 30
    assert cluster.image.configs(BROKER, "") == {"min.insync.replicas": "1"}


def test_the_nodes_own_minimum_becomes_the_clusters():
    cluster = Cluster(settings={"min_insync_replicas": 2})
    assert cluster.image.configs(BROKER, "") == {"min.insync.replicas": "2"}


def test_features_that_are_off_are_not_written():
    cluster = Cluster(levels=features.levels_for_format(metadata_version=21), bootstrap=False)
    assert names(cluster.activate()) == ["Bootstrap records", "metadata.version", "EndTransactionRecord"]


def test_before_transactions_the_records_stand_alone():
    cluster = Cluster(levels=features.levels_for_format(metadata_version=12), bootstrap=False)
    result = cluster.activate()
    assert (names(result), result.is_atomic) == (["metadata.version"], True)


def test_a_running_cluster_needs_nothing(cluster: Cluster):
    cluster.restart()
    assert cluster.activate().records == ()


def test_further_records_of_the_file_follow():
    cluster = Cluster(bootstrap=False)
    extra = Versioned(ConfigRecord(BROKER, "", "log.cleaner.threads", "2"), 0)
    cluster.append(cluster.controller.activate([*bootstrap_records(cluster.levels), extra], 0))
    assert cluster.image.configs(BROKER, "") == {"log.cleaner.threads": "2", "min.insync.replicas": "1"}


def test_a_half_written_beginning_is_aborted_and_made_anew():
    cluster = Cluster(bootstrap=False)
    begun = (
        Versioned(BeginTransactionRecord("Bootstrap records"), 0),
        Versioned(FeatureLevelRecord("share.version", 1), 0),
    )
    cluster.append(Result(begun, None))
    cluster.restart()
    result = cluster.activate()
    assert result.records[0].message == AbortTransactionRecord("Controller failover")
    assert isinstance(result.records[1].message, BeginTransactionRecord)
    assert cluster.image.metadata_version == 30
    cluster.check_law()


def test_a_transaction_left_open_is_aborted(cluster: Cluster):
    begun = (Versioned(BeginTransactionRecord(), 0), Versioned(TopicRecord("half", uuid(1)), 0))
    cluster.append(Result(begun, None))
    cluster.restart()
    result = cluster.activate()
    assert [record.message for record in result.records] == [AbortTransactionRecord("Controller failover")]
    assert not cluster.image.in_transaction
    assert "half" not in cluster.image.topics_by_name


def test_bootstrap_records_must_say_the_metadata_version():
    cluster = Cluster(bootstrap=False)
    with pytest.raises(MetadataFault, match=r"metadata\.version"):
        cluster.controller.activate([Versioned(EndTransactionRecord(), 0)], 0)
