"""Three nodes of ottla or of Apache Kafka 4.3.1, with the face of one broker."""

import compileall
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

import ottla
from benchmarks.broker import raw
from benchmarks.broker.brokers import Apache, cpu_seconds, resident_bytes
from ottla.wire.types import CreateTopicsRequest, DescribeQuorumRequest, MetadataRequest
from tests.interop.node.brokers import APACHE, OTTLA
from tests.interop.quorum.members import Quorum, until

__all__ = ["NODES", "ThreeNodes"]

NODES = (1, 2, 3)
CREATE_MS = 60_000


class ThreeNodes:
    """Its face is that of the first node, which leads the partitions of `make_topic`."""

    def __init__(self, name: str, directory: Path, settings: Mapping[str, str]) -> None:
        self.name = name
        kind = APACHE if name == Apache.name else OTTLA
        if kind == OTTLA:  # an installation would have written the bytecode
            compileall.compile_dir(Path(ottla.__file__).parent, quiet=1)
        self._quorum = Quorum(directory, voters=dict.fromkeys(NODES, kind), heap="1g", **settings)
        self.ports = {
            number: int(node.bootstrap_servers.rpartition(":")[2]) for number, node in self._quorum.nodes.items()
        }
        self.port = self.ports[NODES[0]]

    @property
    def pid(self) -> int:
        return self._quorum.nodes[NODES[0]].pid or 0

    def prepare(self) -> None:
        """The nodes are formatted when they start."""

    def exec(self) -> None:
        self._quorum.start(*NODES)

    def stop(self) -> None:
        for node in self._quorum.nodes.values():
            if node.running:
                node.kill()

    def kill(self, number: int) -> None:
        self._quorum.nodes[number].kill()

    def restart(self, number: int) -> None:
        """Start a node again, and wait until it is in sync for everything."""
        self._quorum.start(number)
        with closing(raw.RawClient(self.ports[number])) as client:
            _wait_in_sync(client, None)

    def quorum_leader(self) -> int:
        kind = DescribeQuorumRequest
        asked = kind((kind.TopicData("__cluster_metadata", (kind.PartitionData(0),)),))
        with closing(raw.RawClient(self.port)) as client:
            return int(client.call(asked, 2).topics[0].partitions[0].leader_id)

    def make_topic(self, name: str, partitions: int = 1, first: int = NODES[0]) -> bytes:
        """A topic whose partitions are in sync on all nodes; its id. The first node leads the first partition."""
        kind = CreateTopicsRequest
        placed = tuple(
            kind.CreatableReplicaAssignment(number, self.replicas(first + number)) for number in range(partitions)
        )
        topic = kind.CreatableTopic(name, -1, -1, placed)
        with closing(raw.RawClient(self.port)) as client:
            (made,) = client.call(kind((topic,), CREATE_MS), 7).topics
            assert made.error_code == 0, made
            _wait_in_sync(client, (MetadataRequest.MetadataRequestTopic(name=name),))
        return bytes(made.topic_id)

    def replicas(self, first: int) -> tuple[int, ...]:
        """All nodes in turn, from this one on; node 4 is the first again."""
        start = (first - 1) % len(NODES)
        return NODES[start:] + NODES[:start]

    def under_load(self, load: Callable[[], float]) -> tuple[float, float]:
        """The load's seconds, and the processor time of all nodes."""
        before = self._sum(cpu_seconds)
        seconds = load()
        return seconds, max(self._sum(cpu_seconds) - before, 1e-9)

    def memory_bytes(self) -> int:
        return int(self._sum(resident_bytes))

    def _sum(self, figure: Callable[[int], float]) -> float:
        return sum(figure(node.pid or 0) for node in self._quorum.nodes.values())


def _wait_in_sync(client: raw.RawClient, topics: tuple[MetadataRequest.MetadataRequestTopic, ...] | None) -> None:
    """Wait until these topics, or all, have partitions whose replicas are all in sync."""
    asked = MetadataRequest(topics, allow_auto_topic_creation=False)

    def is_in_sync() -> bool:
        found = [each for topic in client.call(asked, 9).topics for each in topic.partitions]
        return bool(found) and all(set(each.isr_nodes) == set(each.replica_nodes) for each in found)

    until(is_in_sync, "all replicas in sync")
