"""What `kafka-metadata-quorum describe --status` prints."""

from __future__ import annotations

import json
import re
from typing import Any

_NUMBER = re.compile(r"(HighWatermark|LeaderEpoch|MaxFollowerLag|MaxFollowerLagTimeMs):( +)\d+")
_VOTERS = re.compile(r"CurrentVoters: +(\[.*\])")


def assert_status(said: str, cluster_id: str, leader_id: int, voters: list[dict[str, Any]]) -> None:
    """The form is that of Apache Kafka 4.3.1, whatever the numbers are; `voters` are in the order of their ids."""
    shown = _NUMBER.sub(r"\1:\2N", said)
    found = _VOTERS.search(shown)
    assert found is not None, said
    assert sorted(json.loads(found[1]), key=lambda voter: voter["id"]) == voters
    assert shown.replace(found[1], "VOTERS").splitlines() == [
        f"ClusterId:              {cluster_id}",
        f"LeaderId:               {leader_id}",
        "LeaderEpoch:            N",
        "HighWatermark:          N",
        "MaxFollowerLag:         N",
        "MaxFollowerLagTimeMs:   N",
        "CurrentVoters:          VOTERS",
        "CurrentObservers:       []",
    ]
