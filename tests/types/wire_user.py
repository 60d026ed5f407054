"""How a user's typed program meets ottla.wire; mypy checks that the types are seen."""

from typing import assert_type

from ottla import wire
from ottla.wire.types import MetadataRequest, StreamsGroupHeartbeatResponse
from ottla.wire.types.fetch import FetchResponse

request = MetadataRequest(topics=(MetadataRequest.MetadataRequestTopic(name="orders"),))
assert_type(request.allow_auto_topic_creation, bool)
assert_type(wire.encode(request, 12), bytes)

partition = FetchResponse.PartitionData(partition_index=3, records=b"")
assert_type(partition.records, bytes | memoryview[int] | None)
assert_type(partition.unknown_tags, dict[int, bytes] | None)

answer = StreamsGroupHeartbeatResponse()
if answer.active_tasks is not None:
    for tasks in answer.active_tasks:
        assert_type(tasks.partitions, tuple[int, ...])

code = wire.errors.ErrorCode.NOT_COORDINATOR
assert_type(code.retriable, bool)

MetadataRequest(topics="orders")  # type: ignore[arg-type]
MetadataRequest(topic=())  # type: ignore[call-arg]
