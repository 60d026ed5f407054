"""Answers that brokers give to administrators."""

from __future__ import annotations

from typing import Any

from ottla.wire import frames, types


def offsets_answer(request: frames.Request) -> types.ListOffsetsResponse:
    kind = types.ListOffsetsResponse.ListOffsetsPartitionResponse
    found = tuple(
        types.ListOffsetsResponse.ListOffsetsTopicResponse(
            topic.name,
            tuple(
                kind(each.partition_index, 0, each.timestamp, 10 + each.partition_index, 2) for each in topic.partitions
            ),
        )
        for topic in request.body.topics
    )
    return types.ListOffsetsResponse(topics=found)


def quorum(**changes: Any) -> types.DescribeQuorumResponse:
    answer = types.DescribeQuorumResponse
    voters = (
        answer.ReplicaState(3, b"d" * 16, 100, 50, 60),
        answer.ReplicaState(4, bytes(16), 90, -1, -1),
    )
    observers = (answer.ReplicaState(7, bytes(16), -1, -1, -1),)
    partition = answer.PartitionData(0, changes.pop("partition_error", 0), "why", 3, 8, 95, voters, observers)
    node = answer.Node(3, (answer.Listener("CONTROLLER", "host", 9093),))
    topic = answer.TopicData("__cluster_metadata", (partition,))
    return answer(**{"topics": (topic,), "nodes": (node,), **changes})
