"""Steps of a quorum of five voters, with 100 and with 100,000 records in the log.

    python -m benchmarks.quorum.bench_quorum [--rounds 15]

A step must cost the same, however long the log is: "paired" is the cost with the long log over that with the short one,
and should be 1.00. The logs are real ones, in files; what is taken is the CPU time of the process, so that other work
on the machine counts as little as possible. The first subject has the short log.
"""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec.structs import replace

from benchmarks import runner
from benchmarks.runner import Case, Size, Subject
from ottla.broker.controller.metadata_snapshots import SnapshotFiles
from ottla.broker.controller.replicated_log import MetadataLog
from ottla.core.quorum.events import (
    Actions,
    Answered,
    Appended,
    Event,
    Received,
    Send,
    Start,
    StateStored,
    Synced,
    Tick,
)
from ottla.core.quorum.follower import fetch_request
from ottla.core.quorum.messages import METADATA_TOPIC, METADATA_TOPIC_ID
from ottla.core.quorum.quorum import Quorum
from ottla.core.quorum.stored import StoredState
from ottla.core.quorum.voters import (
    BOOTSTRAP_OFFSET,
    ControlHistory,
    Listener,
    Voter,
    VoterSet,
    voters_record,
)
from ottla.log.config import LogConfig
from ottla.log.disk import OsDisk
from ottla.log.files import LogStorage
from ottla.log.names import TopicPartition
from ottla.log.partition import Partition, create_partition_directory
from ottla.log.recovery import LoadRequest, load
from ottla.wire.batch import Record, build_batch
from ottla.wire.types.control_records import KRaftVersionRecord
from ottla.wire.types.describe_quorum import DescribeQuorumRequest
from ottla.wire.types.fetch import FetchRequest, FetchResponse
from ottla.wire.types.vote import VoteRequest, VoteResponse

LENGTHS = {Size.FULL: (100, 100_000), Size.QUICK: (100, 100_000), Size.SMOKE: (10, 100)}
VOTERS = 5
EPOCH = 3
CLUSTER = "benchmark"
LISTENER = "CONTROLLER"
FETCH_VERSION, VOTE_VERSION, DESCRIBE_VERSION = 18, 2, 2
Step = Callable[[], object]


class GrowingLog(MetadataLog):
    """A log on disk whose leader says that it has appended more; nobody reads that."""

    appended = 0

    @property
    def end_offset(self) -> int:
        return super().end_offset + self.appended


def files_of(directory: Path, records: int) -> tuple[Partition, SnapshotFiles]:
    """A log of so many batches, each of one record, in the present epoch."""
    disk = OsDisk(durable=False)
    storage = LogStorage(disk)
    place = str(directory / f"{METADATA_TOPIC}-0")
    directory.mkdir()
    create_partition_directory(disk, place, METADATA_TOPIC_ID)
    request = LoadRequest(place, TopicPartition(METADATA_TOPIC, 0), LogConfig(), is_clean=True)
    partition, _ = load(storage, request, 0)
    for offset in range(records):
        batch = build_batch([Record(offset, 0, None, b"a record")], partition_leader_epoch=EPOCH)
        partition.append_as_follower(batch, EPOCH, 0)
    return partition, SnapshotFiles(disk, place)


def voters() -> VoterSet:
    numbers = range(1, VOTERS + 1)
    return VoterSet(tuple(Voter(each, bytes([each] * 16), (Listener(LISTENER, "h", each),)) for each in numbers))


def quorum_of(number: int, log: GrowingLog, stored: StoredState) -> Quorum:
    control = ControlHistory()
    control.replay(KRaftVersionRecord(k_raft_version=1), BOOTSTRAP_OFFSET)
    control.replay(voters_record(voters()), 0)
    node = voters().voters[number - 1]
    return Quorum(node, control, log, stored=stored, cluster_id=CLUSTER, random=lambda below: 0)


def step(quorum: Quorum, event: Event) -> Actions:
    return quorum.step(event, quorum.now_ms, 0)


def leading(log: GrowingLog) -> Quorum:
    """Node 1, which has won its election; three of the five have all that it has."""
    quorum = quorum_of(1, log, StoredState(EPOCH, voted_id=1, voted_directory_id=bytes([1] * 16)))
    kind = VoteResponse
    granted = kind(topics=(kind.TopicData(METADATA_TOPIC, (kind.PartitionData(0, 0, -1, EPOCH, True),)),))
    for message in step(quorum, Start()).messages[:2]:
        assert isinstance(message, Send)
        step(quorum, Answered(message.request_id, granted))
    step(quorum, StateStored())
    log.appended += 3  # LeaderChange, KRaftVersion and Voters
    step(quorum, Synced(log.end_offset))
    return quorum


def fetch_by(number: int, quorum: Quorum, offset: int) -> Received:
    """A fetch that does not wait, by a follower that has everything before an offset."""
    own = fetch_request(quorum)
    partition = replace(
        own.topics[0].partitions[0],
        fetch_offset=offset,
        last_fetched_epoch=EPOCH,
        replica_directory_id=bytes([number] * 16),
    )
    topics = (replace(own.topics[0], partitions=(partition,)),)
    request = replace(own, replica_state=FetchRequest.ReplicaState(number), max_wait_ms=0, topics=topics)
    return Received(request, None, FETCH_VERSION, LISTENER)


def steps_of_leader(log: GrowingLog) -> Iterator[tuple[str, Step]]:
    quorum = leading(log)
    end_offset = log.end_offset
    idle = fetch_by(2, quorum, end_offset)
    yield "leader: a fetch without news", lambda: step(quorum, idle)
    behind = fetch_by(3, quorum, end_offset - log.appended - 1)
    yield "leader: a fetch of one record", lambda: step(quorum, behind)
    yield "leader: a tick", lambda: step(quorum, Tick())
    vote = VoteRequest.PartitionData(0, EPOCH, 2, last_offset_epoch=EPOCH - 1, last_offset=1)
    asked = Received(VoteRequest(CLUSTER, 1, (VoteRequest.TopicData(METADATA_TOPIC, (vote,)),)), None, VOTE_VERSION)
    yield "leader: a vote", lambda: step(quorum, asked)
    topic = DescribeQuorumRequest.TopicData(METADATA_TOPIC, (DescribeQuorumRequest.PartitionData(0),))
    describe = DescribeQuorumRequest((topic,))
    yield "leader: DescribeQuorum", lambda: quorum.describe(describe, DESCRIBE_VERSION, quorum.now_ms, 0)
    yield "leader: a record is appended, and three of five have it", lambda: _commit(quorum, log)


def _commit(quorum: Quorum, log: GrowingLog) -> None:
    log.appended += 1
    end_offset = log.end_offset
    step(quorum, Appended(end_offset))
    step(quorum, Synced(end_offset))
    for number in (2, 3):
        actions = step(quorum, fetch_by(number, quorum, end_offset))
    assert actions.high_watermark == end_offset


def steps_of_follower(log: GrowingLog) -> Iterator[tuple[str, Step]]:
    quorum = quorum_of(2, log, StoredState(EPOCH, leader_id=1))
    kind = FetchResponse
    leader = kind.LeaderIdAndEpoch(1, EPOCH)
    partition = kind.PartitionData(0, 0, log.end_offset, current_leader=leader, records=b"")
    response = kind(responses=(kind.FetchableTopicResponse(topic_id=METADATA_TOPIC_ID, partitions=(partition,)),))
    sent = [_fetch_in(step(quorum, Start()))]

    def answered() -> None:
        sent[0] = _fetch_in(step(quorum, Answered(sent[0], response)))

    yield "follower: an answer without news, and the next fetch", answered


def _fetch_in(actions: Actions) -> int:
    sends = [each for each in actions.messages if isinstance(each, Send)]
    (request_id,) = [each.request_id for each in sends if isinstance(each.request, FetchRequest)]
    return request_id


def main(arguments: Sequence[str] | None = None) -> int:
    options = runner.read_windows(runner.parser(__doc__), arguments, lengths=LENGTHS)
    with TemporaryDirectory() as folder:
        steps: dict[str, list[Subject]] = {}
        for length in options.lengths:
            files = files_of(Path(folder) / str(length), length)
            for name, call in (*steps_of_follower(GrowingLog(*files)), *steps_of_leader(GrowingLog(*files))):
                steps.setdefault(name, []).append(Subject(f"{length:,} records", call, [()]))
        cases = [Case(name, subjects) for name, subjects in steps.items()]
        runner.run("quorum", cases, options, ("msgspec",), clock=time.process_time)
    return 0


if __name__ == "__main__":
    sys.exit(main())
