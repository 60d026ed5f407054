import pytest

from ottla.core.metadata import features
from ottla.core.metadata.features import FeatureError, levels_for_format, metadata_version_of


def test_a_new_cluster_has_the_features_of_4_3():
    assert levels_for_format() == {
        "metadata.version": 30,
        "kraft.version": 1,
        "transaction.version": 2,
        "group.version": 1,
        "eligible.leader.replicas.version": 1,
        "share.version": 1,
        "streams.version": 1,
    }


def test_defaults_follow_the_release():
    levels = levels_for_format(metadata_version=metadata_version_of("4.0"))
    assert (levels["metadata.version"], levels["transaction.version"], levels["group.version"]) == (25, 2, 1)
    assert (levels["eligible.leader.replicas.version"], levels["share.version"], levels["streams.version"]) == (0, 0, 0)


def test_a_static_quorum_has_kraft_version_0():
    assert levels_for_format(is_dynamic_quorum=False)["kraft.version"] == 0


@pytest.mark.parametrize(
    ("text", "level"),
    [("4.3", 30), ("4.3.1", 30), ("4.3-IV0", 30), ("30", 30), ("3.9", 21), ("4.0-IV1", 23), ("3.3", 7)],
)
def test_names_of_metadata_versions(text: str, level: int):
    assert metadata_version_of(text) == level


@pytest.mark.parametrize("text", ["4.4", "31", "3.2", "latest", ""])
def test_other_metadata_versions_are_not_known(text: str):
    with pytest.raises(FeatureError, match=r"3\.3-IV3"):
        metadata_version_of(text)


@pytest.mark.parametrize(
    ("requested", "reason"),
    [
        ({"group.versoin": 1}, "nearest is group.version"),
        ({"share.version": 2}, "levels 0 to 1"),
        ({"share.version": -1}, "levels 0 to 1"),
        ({"metadata.version": 31}, "levels 7 to 30"),
        ({"metadata.version": 22, "eligible.leader.replicas.version": 1}, "needs metadata.version 23"),
        ({"kraft.version": 0}, "must be 1"),
    ],
)
def test_what_cannot_be_formatted(requested: dict[str, int], reason: str):
    with pytest.raises(FeatureError, match=reason):
        levels_for_format(requested)


def test_kraft_version_1_needs_a_dynamic_quorum():
    with pytest.raises(FeatureError, match=r"controller\.quorum\.voters"):
        levels_for_format({"kraft.version": 1}, is_dynamic_quorum=False)


def test_the_release_is_given_once():
    with pytest.raises(FeatureError, match="twice"):
        levels_for_format({"metadata.version": 30}, metadata_version=30)


def test_a_feature_may_be_on_before_it_is_the_default():
    levels = levels_for_format({"metadata.version": 23, "eligible.leader.replicas.version": 1})
    assert features.elr_enabled(levels)


def test_levels_that_must_be_asked_for():
    with pytest.raises(FeatureError, match=r"share.version has the levels 0 to 1, not 2; it needs unstable"):
        levels_for_format({"share.version": 2})
    assert levels_for_format({"share.version": 2}, is_unstable=True)["share.version"] == 2
    assert levels_for_format(is_unstable=True) == levels_for_format()
    with pytest.raises(FeatureError, match=r"share.version has the levels 0 to 2, not 3$"):
        levels_for_format({"share.version": 3}, is_unstable=True)
