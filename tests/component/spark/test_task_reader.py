"""What a task does: pieces, damage, and offsets that are gone, against the fake cluster."""

import json
from typing import Any

import pytest

from ottla.client.errors import ResponseError
from ottla.spark.errors import OttlaSparkError
from ottla.spark.topic.options import TopicOptions
from ottla.spark.topic.plan import Task
from ottla.spark.topic.task_reader import read_task
from ottla.wire import frames, types
from tests.component.client.blocking.threaded import ThreadedCluster, threaded
from tests.component.client.fake import FakeCluster
from tests.component.client.fake_logs import ORDERS, Logs
from tests.unit.client.batches import batch
from tests.unit.spark.fake_cluster import topic_options

QUICK = {"kafka.fetch.max.wait.ms": "1", "kafkaConsumer.pollTimeoutMs": "30000"}


def options(**given: str) -> TopicOptions:
    return topic_options(**QUICK, **given)


def cluster_with(logs: Logs) -> FakeCluster:
    cluster = FakeCluster(1, {"orders": [1]})
    cluster.broker().on("Fetch", logs.fetch)
    cluster.broker().on("ListOffsets", logs.list_offsets)
    return cluster


def read(there: ThreadedCluster, start: int, until: int, **given: str) -> list[int]:
    with there.client() as client:
        task = Task(ORDERS, None, start, until, 1, 0)
        batches = list(read_task(lambda: client, task, options(**given)))
    return [offset for each in batches for offset in each.column("offset").to_pylist()]


def test_only_the_range_is_given():
    with threaded(cluster_with(Logs(orders=[batch(0, 1, 2), batch(3, 4), batch(5, 6)]))) as there:
        assert read(there, 1, 4) == [1, 2, 3]


def test_a_line_says_what_was_done_if_it_is_asked_for(caplog: pytest.LogCaptureFixture):
    with threaded(cluster_with(Logs(orders=[batch(0, 1, 2)]))) as there:
        read(there, 0, 3)
        assert not caplog.records
        read(there, 0, 3, reportTasks="true")
    (line,) = [json.loads(each.message) for each in caplog.records if each.name == "ottla.spark.progress"]
    assert (line["topic"], line["partition"], line["rows"], line["fetches"]) == ("orders", 0, 3, 1)


def flipped(logs: Logs, times: int) -> Any:
    """A Fetch whose answer has one wrong bit, so often."""
    left = [times]

    def fetch(request: frames.Request) -> types.FetchResponse:
        answer = logs.fetch(request)
        if left[0] > 0:
            left[0] -= 1
            data = answer.responses[0].partitions[0]
            damaged = bytearray(data.records)
            damaged[-1] ^= 1
            part = types.FetchResponse.PartitionData(0, high_watermark=data.high_watermark, records=bytes(damaged))
            topic = types.FetchResponse.FetchableTopicResponse("orders", answer.responses[0].topic_id, (part,))
            return types.FetchResponse(responses=(topic,))
        return answer

    return fetch


def test_damage_on_the_way_is_mended_by_asking_again(caplog: pytest.LogCaptureFixture):
    logs = Logs(orders=[batch(0, 1), batch(2, 3)])
    cluster = cluster_with(logs)
    cluster.broker().on("Fetch", flipped(logs, 1))
    with threaded(cluster) as there:
        assert read(there, 0, 4) == [0, 1, 2, 3]
    assert caplog.text.count("fetching it again") == 1


def test_damage_that_stays_is_named():
    logs = Logs(orders=[batch(0, 1)])
    cluster = cluster_with(logs)
    cluster.broker().on("Fetch", flipped(logs, 100))
    text = r"corrupt record batch at topic orders partition 0 offset 0: .*crc"
    with threaded(cluster) as there, pytest.raises(OttlaSparkError, match=text):
        read(there, 0, 2)


def test_checksums_may_be_passed_over():
    logs = Logs(orders=[batch(0, 1, value=b"vv")])
    damaged = bytearray(logs.batches[ORDERS][0])
    damaged[17] ^= 1  # of the checksum itself
    logs.batches[ORDERS] = [bytes(damaged)]
    with threaded(cluster_with(logs)) as there:
        assert read(there, 0, 2, **{"kafka.check.crcs": "false"}) == [0, 1]


def test_offsets_that_were_deleted():
    logs = Logs(orders=[batch(5, 6), batch(7)])
    logs.start = 5
    with threaded(cluster_with(logs)) as there:
        with pytest.raises(OttlaSparkError, match=r"data lost: topic orders partition 0: offsets 2\.\.4 were deleted"):
            read(there, 2, 8)
        assert read(there, 2, 8, failOnDataLoss="false") == [5, 6, 7]
        assert read(there, 2, 4, failOnDataLoss="false") == []


def test_a_log_that_ends_before_the_range():
    with threaded(cluster_with(Logs(orders=[batch(0, 1)]))) as there:
        with pytest.raises(OttlaSparkError, match="the log ends at offset 2, before 5"):
            read(there, 5, 8)
        assert read(there, 5, 8, failOnDataLoss="false") == []


def test_a_topic_that_was_deleted():
    with threaded(FakeCluster(1, {})) as there:
        with pytest.raises(OttlaSparkError, match="the topic was deleted while it was read"):
            read(there, 0, 2)
        assert read(there, 0, 2, failOnDataLoss="false") == []


def test_other_errors_are_the_callers():
    logs = Logs(orders=[batch(0)])
    logs.errors[ORDERS] = [29] * 10
    with threaded(cluster_with(logs)) as there, pytest.raises(ResponseError, match="TOPIC_AUTHORIZATION_FAILED"):
        read(there, 0, 1)
