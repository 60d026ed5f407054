from typing import Any

import msgspec
import pytest

from ottla.core.metadata import features
from ottla.core.metadata.context import KRaftUpgrade, Result
from ottla.core.metadata.feature_updates import SAFE_DOWNGRADE, UNSAFE_DOWNGRADE, UPGRADE
from ottla.core.metadata.image import BROKER
from ottla.wire.errors import ErrorCode
from ottla.wire.keyed import Versioned
from ottla.wire.types.cluster_metadata import ConfigRecord, FeatureLevelRecord
from ottla.wire.types.update_features import UpdateFeaturesRequest
from tests.unit.core.metadata.cluster import Cluster, registration

Update = UpdateFeaturesRequest.FeatureUpdateKey


def request(*updates: tuple[str, int, int], validate_only: bool = False) -> UpdateFeaturesRequest:
    given = tuple(Update(name, level, upgrade_type=kind) for name, level, kind in updates)
    return UpdateFeaturesRequest(feature_updates=given, validate_only=validate_only)


def old_cluster(**levels: int) -> Cluster:
    given = {name.replace("_", "."): level for name, level in levels.items()}
    return Cluster(levels=features.levels_for_format(given)).with_brokers(1)


def test_upgrades():
    cluster = old_cluster(metadata_version=25, group_version=0)
    reply = cluster.submit(request(("metadata.version", 30, UPGRADE), ("group.version", 1, UPGRADE)))
    assert (reply.error_code, reply.error_message, reply.results) == (0, None, ())
    assert cluster.image.features["metadata.version"] == 30
    assert cluster.image.features["group.version"] == 1
    cluster.check_law()


def test_old_versions_list_the_features():
    cluster = old_cluster(group_version=0)
    reply = cluster.submit(request(("group.version", 1, UPGRADE)), api_version=1)
    assert [(result.feature, result.error_code) for result in reply.results] == [("group.version", 0)]


def test_the_oldest_version_says_downgrade_in_its_own_way(cluster: Cluster):
    update = Update("share.version", 0, allow_downgrade=True)
    assert cluster.submit(UpdateFeaturesRequest(feature_updates=(update,)), api_version=0).error_code == 0
    assert "share.version" not in cluster.image.features


@pytest.mark.parametrize("kind", [SAFE_DOWNGRADE, UNSAFE_DOWNGRADE])
def test_a_feature_goes_down_when_asked_to(cluster: Cluster, kind: int):
    assert cluster.submit(request(("transaction.version", 1, kind))).error_code == 0
    assert cluster.image.features["transaction.version"] == 1


def test_metadata_version_goes_down_where_nothing_is_lost():
    cluster = old_cluster(metadata_version=29)
    assert cluster.submit(request(("metadata.version", 26, SAFE_DOWNGRADE))).error_code == 0
    assert cluster.image.metadata_version == 26


@pytest.mark.parametrize(
    "update",
    [
        ("metadata.version", 31, UPGRADE),
        ("metadata.version", 6, SAFE_DOWNGRADE),
        ("metadata.version", 29, UPGRADE),
        ("metadata.version", 29, SAFE_DOWNGRADE),
        ("metadata.version", 29, UNSAFE_DOWNGRADE),
        ("share.version", 2, UPGRADE),
        ("share.version", 0, UPGRADE),
        ("share.version", -1, SAFE_DOWNGRADE),
        ("group.version", 1, 0),
        ("no.such.feature", 1, UPGRADE),
        ("no.such.feature", 0, SAFE_DOWNGRADE),
        ("kraft.version", 0, SAFE_DOWNGRADE),
    ],
    ids=str,
)
def test_what_cannot_be_is_refused_as_a_whole(cluster: Cluster, update: tuple[str, int, int]):
    result = cluster.ask(request(("transaction.version", 1, SAFE_DOWNGRADE), update))
    assert ErrorCode(result.reply.error_code) is ErrorCode.INVALID_UPDATE_VERSION
    assert update[0] in result.reply.error_message
    assert (result.records, result.reply.results) == ((), ())


def test_up_is_not_down():
    cluster = old_cluster(group_version=0)
    reply = cluster.ask(request(("group.version", 1, SAFE_DOWNGRADE))).reply
    assert ErrorCode(reply.error_code) is ErrorCode.INVALID_UPDATE_VERSION


def test_the_same_level_again_is_fine(cluster: Cluster):
    assert cluster.submit(request(("kraft.version", 1, UPGRADE), ("group.version", 1, UPGRADE))).error_code == 0


@pytest.mark.parametrize("validate_only", [False, True])
def test_the_quorum_is_asked_for_a_higher_kraft_version(cluster: Cluster, validate_only: bool):
    asked = request(("kraft.version", 1, UPGRADE), ("group.version", 0, SAFE_DOWNGRADE))
    asked = msgspec.structs.replace(asked, validate_only=validate_only)
    result = cluster.ask(asked, kraft_version=0)
    assert (result.reply.error_code, result.kraft_upgrade) == (0, KRaftUpgrade(1, validate_only))
    assert cluster.ask(asked).kraft_upgrade is None, "it is there"
    refused = cluster.ask(request(("kraft.version", 2, UPGRADE)), kraft_version=0)
    assert (ErrorCode(refused.reply.error_code), refused.kraft_upgrade) == (ErrorCode.INVALID_UPDATE_VERSION, None)


def test_every_node_must_support_it(empty_cluster: Cluster):
    cluster = old_cluster(metadata_version=29)
    narrow = tuple(
        type(feature)(feature.name, feature.min_supported_version, 29 if feature.name == "metadata.version" else 2)
        for feature in registration(2).features
    )
    cluster.register(2, features=narrow)
    reply = cluster.ask(request(("metadata.version", 30, UPGRADE))).reply
    assert ErrorCode(reply.error_code) is ErrorCode.INVALID_UPDATE_VERSION
    assert "Broker 2" in reply.error_message


def test_features_depend_on_what_the_same_request_brings():
    elr = "eligible.leader.replicas.version"
    cluster = old_cluster(metadata_version=22)
    assert cluster.ask(request((elr, 1, UPGRADE))).reply.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert cluster.ask(request((elr, 1, UPGRADE), ("metadata.version", 23, UPGRADE))).reply.error_code == 0


def test_elr_brings_one_minimum_for_the_whole_cluster():
    cluster = old_cluster(metadata_version=25)
    own = Versioned(ConfigRecord(BROKER, "1", "min.insync.replicas", "2"), 0)
    cluster.append(Result((own,), None))
    result = cluster.ask(request(("eligible.leader.replicas.version", 1, UPGRADE)))
    first, second, third = (record.message for record in result.records)
    assert first == ConfigRecord(BROKER, "", "min.insync.replicas", "1")
    assert second == ConfigRecord(BROKER, "1", "min.insync.replicas", None)
    assert third == FeatureLevelRecord("eligible.leader.replicas.version", 1)


def test_only_validating(cluster: Cluster):
    result = cluster.ask(request(("share.version", 0, SAFE_DOWNGRADE), validate_only=True))
    assert (result.reply.error_code, result.records) == (0, ())


def test_rights(cluster: Cluster):
    def nobody(*_: Any) -> bool:
        return False

    reply = cluster.ask(request(("share.version", 0, SAFE_DOWNGRADE)), authorize=nobody).reply
    assert ErrorCode(reply.error_code) is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
