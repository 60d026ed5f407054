"""UpdateFeatures by raw requests, and kafka-features: the same on both brokers."""

from __future__ import annotations

import re

import pytest

from ottla.wire.types.update_features import UpdateFeaturesRequest
from tests.component.broker.raw_client import RawClient
from tests.interop.apache import tool
from tests.interop.node.brokers import Node
from tests.interop.process import ProgramFailed

TOOL = "org.apache.kafka.tools.FeatureCommand"
UPGRADE, SAFE, UNSAFE = 1, 2, 3
FAILED = "The update failed for all features since the following feature had an error: "
DELETES = "Refusing to perform the requested downgrade because it might delete metadata information."
NOT_ASKED_FOR = "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe"


@pytest.mark.parametrize(
    ("name", "level", "upgrade", "reason"),
    [
        ("nope", 1, UPGRADE, "Invalid update version 1 for feature nope. Local controller 1 does not support this"),
        (
            "group.version",
            7,
            UPGRADE,
            "Invalid update version 7 for feature group.version. Local controller 1 only supports versions 0-1",
        ),
        ("group.version", 0, UPGRADE, f"Invalid update version 0 for feature group.version. {NOT_ASKED_FOR}"),
        (
            "group.version",
            1,
            9,
            "Invalid update version 1 for feature group.version. The controller does not support the given upgrade",
        ),
        (
            "transaction.version",
            -1,
            SAFE,
            "Invalid update version -1 for feature transaction.version. A feature version cannot be less than 0.",
        ),
        ("metadata.version", 20, SAFE, f"Unsupported metadata.version downgrade from 30 to 20. {DELETES}"),
        (
            "metadata.version",
            20,
            UNSAFE,
            "Unsupported metadata.version downgrade from 30 to 20. Unsafe metadata downgrade is not supported in this",
        ),
        (
            "metadata.version",
            31,
            UPGRADE,
            "Invalid update version 31 for feature metadata.version. Local controller 1 only supports versions 7-30",
        ),
        (
            "kraft.version",
            0,
            SAFE,
            "Invalid update version 0 for feature kraft.version. Can't downgrade the version of this feature.",
        ),
    ],
)
def test_what_is_refused(client: RawClient, name: str, level: int, upgrade: int, reason: str):
    update = UpdateFeaturesRequest.FeatureUpdateKey(name, level, False, upgrade)
    reply = client.ask(UpdateFeaturesRequest(10_000, (update,), True), 2)
    assert (reply.error_code, reply.results) == (95, ())
    assert reply.error_message.startswith(FAILED + reason)


@pytest.mark.parametrize(("name", "level"), [("share.version", 1), ("kraft.version", 1), ("group.version", 1)])
@pytest.mark.parametrize("version", [0, 1, 2])
def test_the_present_level_is_fine(client: RawClient, name: str, level: int, version: int):
    update = UpdateFeaturesRequest.FeatureUpdateKey(name, level, False, UPGRADE)
    reply = client.ask(UpdateFeaturesRequest(10_000, (update,)), version)
    assert (reply.error_code, reply.error_message) == (0, None)
    results = [(each.feature, each.error_code, each.error_message) for each in reply.results]
    assert results == ([(name, 0, "NONE")] if version < 2 else [])


def test_one_wrong_update_spoils_all(client: RawClient):
    kind = UpdateFeaturesRequest.FeatureUpdateKey
    both = (kind("group.version", 7, False, UPGRADE), kind("share.version", 0, False, SAFE))
    assert client.ask(UpdateFeaturesRequest(10_000, both), 1).error_code == 95
    again = kind("share.version", 1, False, SAFE)  # it is at 1 still: no change
    assert client.ask(UpdateFeaturesRequest(10_000, (again,)), 1).error_code == 0


def test_the_tool_describes_and_is_refused(broker: Node):
    where = ("--bootstrap-server", broker.bootstrap_servers)
    described = tool(TOOL, *where, "describe")
    rows = [re.sub(r"\s+", " ", line).rpartition(" Epoch: ")[0] for line in described.splitlines()]
    levels = [
        ("eligible.leader.replicas.version", "0", "1", "1"),
        ("group.version", "0", "1", "1"),
        ("kraft.version", "0", "1", "1"),
        ("metadata.version", "3.3-IV3", "4.3-IV0", "4.3-IV0"),
        ("share.version", "0", "1", "1"),
        ("streams.version", "0", "1", "1"),
        ("transaction.version", "0", "2", "2"),
    ]
    assert rows == [
        f"Feature: {name} SupportedMinVersion: {low} SupportedMaxVersion: {high} FinalizedVersionLevel: {level}"
        for name, low, high, level in levels
    ]
    with pytest.raises(ProgramFailed) as failure:
        tool(TOOL, *where, "upgrade", "--feature", "group.version=7")
    assert (
        "Could not upgrade group.version to 7. The update failed for all features since the following feature had an "
        "error: Invalid update version 7 for feature group.version. Local controller 1 only supports versions 0-1"
    ) in failure.value.output
