"""A quorum whose nodes are ottla's, Apache Kafka's, or both, as processes on loopback.

    with Quorum(tmp_path, voters={1: APACHE, 2: APACHE, 3: OTTLA}) as quorum:
        quorum.create_topic("orders")
        quorum.nodes[quorum.leader].kill()
        quorum.wait_for(lambda view: view.epoch > 1, "another leader")

Every node has a server.properties that both kinds of node, and the tools of both, understand.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

from ottla.testing.certificates import LOCAL_HOSTS
from ottla.testing.clusters import cluster as clusters
from ottla.wire import uuid_text
from ottla.wire.batch import BatchView, split_batches
from ottla.wire.errors import ErrorCode
from ottla.wire.properties import read_properties
from ottla.wire.types import (
    AlterPartitionReassignmentsRequest,
    CreateTopicsRequest,
    DescribeQuorumRequest,
    ElectLeadersRequest,
    MetadataRequest,
)
from tests.component.broker.raw_client import Closed, Connection, RawClient
from tests.interop.apache import ONE_NODE, dump_log, free_ports, tool
from tests.interop.node.brokers import APACHE, OTTLA, Node, node_of
from tests.interop.process import ProgramFailed, tail
from tests.interop.quorum.controller_login import ControllerLogin

MIXED = {"one ottla": {1: APACHE, 2: APACHE, 3: OTTLA}, "one apache": {1: OTTLA, 2: OTTLA, 3: APACHE}}
"""Clusters of both kinds."""
CLUSTER_ID = "b3R0bGEtcXVvcnVtLTAwMQ"
WAIT_S = 240
"""The bound of everything that is waited for. It takes seconds, where a machine has nothing else to do."""
CONTROLLER, INTERNAL = "CONTROLLER", "INTERNAL"
"""The listeners that nodes reach each other by."""
_INTERNAL_LISTENER = {
    "inter.broker.listener.name": INTERNAL,
    "listener.security.protocol.map": f"PLAINTEXT:PLAINTEXT,{INTERNAL}:PLAINTEXT,{CONTROLLER}:PLAINTEXT",
}
METADATA_QUORUM = "org.apache.kafka.tools.MetadataQuorumCommand"
METADATA_DIR = "__cluster_metadata-0"
_POLL_S = 0.1
_CREATE_MS = 10_000
_ELECT_MS = 10_000
_PREFERRED = 0
_IN_PLACE = (ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED)
FETCH_TIMEOUT_S = 5
_PATIENCE = {
    "controller.quorum.election.timeout.ms": "2000",
    "controller.quorum.fetch.timeout.ms": f"{FETCH_TIMEOUT_S}000",
}
"""A disk that takes a second for a sync is no reason for an election."""
_NOT_NOW = (
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.INVALID_REPLICATION_FACTOR,
    ErrorCode.TOPIC_ALREADY_EXISTS,  # the attempt before has made it
)

T = TypeVar("T")


class Replica(NamedTuple):
    """A row of DescribeQuorum."""

    node_id: int
    directory_id: str
    end_offset: int


class View(NamedTuple):
    """What the leader of a quorum says of it."""

    leader_id: int
    epoch: int
    high_watermark: int
    voters: tuple[Replica, ...]
    observers: tuple[Replica, ...]

    @property
    def voter_ids(self) -> set[int]:
        return {each.node_id for each in self.voters}

    @property
    def observer_ids(self) -> set[int]:
        return {each.node_id for each in self.observers}

    def has_lag(self) -> bool:
        """Whether a replica lacks something that is committed, or has not told the leader yet that it has it."""
        return not all(each.end_offset >= self.high_watermark > 0 for each in self.voters + self.observers)


class Quorum:
    """Nodes of one cluster. The `with` statement starts the voters; what runs at its end is killed."""

    hosts: ClassVar[Sequence[str]] = LOCAL_HOSTS
    """All names by which nodes are known."""
    has_internal_listener: ClassVar[bool] = False
    """Whether brokers reach each other by a listener that clients do not use; with TLS or logins they always do."""

    def __init__(
        self,
        directory: Path,
        *,
        voters: Mapping[int, str],
        brokers: Mapping[int, str] | None = None,
        spares: Mapping[int, str] | None = None,
        heap: str = "256m",
        **settings: object,
    ) -> None:
        """Ids and kinds of nodes. Voters are brokers, too; `spares` are controllers that do not vote yet. The heap is
        that of Apache Kafka's nodes."""
        self._heap = heap
        self._directory = directory
        self._login = None
        if clusters.DEFAULT_SECURITY != "plaintext":
            self._login = ControllerLogin(clusters.DEFAULT_SECURITY, directory, self.hosts)
            settings = self._login.settings | settings
        elif self.has_internal_listener:
            settings = _INTERNAL_LISTENER | settings
        roles = dict.fromkeys(voters, "broker,controller")
        roles |= dict.fromkeys(brokers or {}, "broker") | dict.fromkeys(spares or {}, "controller")
        self.voters = tuple(voters)
        self.kinds = {**voters, **(brokers or {}), **(spares or {})}
        self.nodes: dict[int, Node] = {}
        self.paused: set[int] = set()
        for number, kind in self.kinds.items():
            self.nodes[number] = self._node(kind, directory / f"node-{number}", ONE_NODE | _PATIENCE | settings)
        controllers = {number: self.advertised_controller(number) for number in (*voters, *(spares or {}))}
        initial = ",".join(f"{number}@{controllers[number]}:{_directory_id(number)}" for number in voters)
        for number, node in self.nodes.items():
            addresses = self._listeners(node, roles[number])
            advertised = {name: self._advertised(number, name, address) for name, address in addresses.items()}
            node.settings |= {
                "node.id": str(number),
                "process.roles": roles[number],
                "controller.listener.names": CONTROLLER,
                "controller.quorum.bootstrap.servers": ",".join(controllers.values()),
                "listeners": _joined(addresses),
                "advertised.listeners": _joined(advertised),
            }
            node.format_arguments = (
                ("--initial-controllers", initial) if number in voters else ("--no-initial-controllers",)
            )

    def __enter__(self) -> Self:
        try:
            self.start(*self.voters)
        except BaseException as error:
            self._end(error)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end(error)

    def _end(self, error: BaseException | None) -> None:
        for number, node in self.nodes.items():
            if node.running:
                node.kill()
            if error is not None:
                error.add_note(f"--- node {number}\n{tail(node.log_path, 20)}")

    def advertised_controller(self, number: int) -> str:
        """Where the other nodes look for a controller."""
        return self._advertised(number, CONTROLLER, self.nodes[number].controller_servers)

    def _advertised(self, number: int, listener: str, address: str) -> str:
        """Where others look for a listener of a node."""
        return address

    def _listeners(self, node: Node, roles: str) -> dict[str, str]:
        """Where a node listens, by the names of its listeners."""
        of_broker = {"PLAINTEXT": node.bootstrap_servers}
        if self._login or self.has_internal_listener:
            of_broker[INTERNAL] = f"127.0.0.1:{free_ports(1)[0]}"
        by_role = {"broker": of_broker, "controller": {CONTROLLER: node.controller_servers}}
        return {name: address for role in roles.split(",") for name, address in by_role[role].items()}

    def start(self, *numbers: int) -> None:
        """Start nodes side by side, and wait until all of them serve."""
        self.paused.difference_update(numbers)
        for number in numbers:
            self.nodes[number].launch()
        self.wait_ready(*numbers)

    def wait_ready(self, *numbers: int) -> None:
        """Wait until nodes that were launched serve."""
        for number in numbers:
            self.nodes[number].wait(timeout_s=WAIT_S)

    def pause(self, number: int) -> None:
        """Let a node stand still."""
        self.paused.add(number)
        self._signal(number, signal.SIGSTOP)

    def resume(self, number: int) -> None:
        self._signal(number, signal.SIGCONT)
        self.paused.discard(number)

    def _signal(self, number: int, what: signal.Signals) -> None:
        pid = self.nodes[number].pid
        assert pid is not None, f"node {number} does not run"
        os.kill(pid, what)

    def end(self, how: str) -> None:
        """End all nodes, "stopped" or "killed".

        The last that are a majority of the voters are stopped together: one alone could not write down that it stops.
        Apache Kafka's nodes then wait for a controller that is gone, and now and then one has to be killed.
        """
        nodes = list(self.nodes.values())
        if how == "killed":
            for node in nodes:
                node.kill()
            return
        majority = len(self.voters) // 2 + 1
        for node in nodes[:-majority]:
            node.stop()
        with ThreadPoolExecutor(majority) as together:
            for ending in [together.submit(node.stop) for node in nodes[-majority:]]:
                with suppress(ProgramFailed):
                    ending.result()

    def replace(self, number: int, kind: str) -> None:
        """Put a node of another kind in the place of one that is stopped: with its directory, settings and ports."""
        old, self.kinds[number] = self.nodes[number], kind
        assert not old.running
        new = self.nodes[number] = self._node(kind, old.directory, old.settings)
        new._ports = old._ports

    def _node(self, kind: str, directory: Path, settings: Mapping[str, object]) -> Node:
        heap = {"heap": self._heap} if kind == APACHE else {}
        return node_of(kind, directory, cluster_id=CLUSTER_ID, **heap, **settings)

    def check_health(self) -> None:
        """No node has failed inside, and those that run are well."""
        for number, node in self.nodes.items():
            if node.log_path.exists():
                assert "Traceback" not in node.log, f"node {number}: {node.log}"
                assert "FaultHandler" not in node.log, f"node {number}: {node.log[-20_000:]}"

    # --- what the leader says -----------------------------------------------------------------------------------------

    def view(self) -> View | None:
        """What the leader says; None while there is none. Paused nodes are not asked."""
        asked = [number for number, node in self.nodes.items() if node.running and number not in self.paused]
        views = [self._view_of(number) for number in asked]
        return max((view for view in views if view is not None), key=lambda view: view.epoch, default=None)

    def _view_of(self, number: int) -> View | None:
        if "controller" in self.nodes[number].settings["process.roles"]:
            with suppress(OSError, Closed):
                answer = self.describe(number)
                if not answer.error_code:
                    replicas = (_replicas(answer.current_voters), _replicas(answer.observers))
                    return View(answer.leader_id, answer.leader_epoch, answer.high_watermark, *replicas)
        return None

    def describe(self, number: int) -> Any:
        """What a controller answers to DescribeQuorum."""
        kind = DescribeQuorumRequest
        request = kind((kind.TopicData("__cluster_metadata", (kind.PartitionData(0),)),))
        return self.ask_controller(number, request, 2).topics[0].partitions[0]

    def ask_controller(self, number: int, request: object, version: int) -> Any:
        with closing(self.connect_to_controller(number)) as connection:
            return connection.ask(request, version)

    def connect_to_controller(self, number: int) -> Connection:
        host, _, port = self.nodes[number].controller_servers.rpartition(":")
        connection = Connection((host, int(port)), "test")
        if self._login is not None:
            self._login.log_in(connection, host)
        return connection

    def wait_for(self, is_so: Callable[[View], bool], what: str) -> View:
        """The first view of the quorum of which something is true."""
        view: View | None = None

        def find() -> View | None:
            nonlocal view
            view = self.view()
            return view if view is not None and is_so(view) else None

        try:
            return until(find, what)
        except AssertionError as error:
            error.add_note(f"the leader says: {view}")
            raise

    @property
    def leader(self) -> int:
        return self.wait_for(lambda view: True, "a leader").leader_id

    def wait_for_voters(self) -> View:
        """Until all voters have what is committed."""
        return self.wait_for(lambda view: view.voter_ids == set(self.voters) and not view.has_lag(), "all voters")

    def wait_for_lag_0(self, *observers: int) -> View:
        """Until these nodes observe, and every replica has what is committed."""
        return self.wait_for(lambda view: view.observer_ids == set(observers) and not view.has_lag(), "lag 0")

    # --- topics -------------------------------------------------------------------------------------------------------

    def create_topic(self, name: str, *, at: int) -> None:
        """Have a broker create a topic. When this returns, it is acknowledged.

        On a machine that stands still for seconds there may be no controller for a while, or no broker with a session.
        """
        topic = CreateTopicsRequest.CreatableTopic(name, 1, 1)

        def create() -> bool:
            with suppress(OSError, Closed):
                (answer,) = ask(self.nodes[at].bootstrap_servers, CreateTopicsRequest((topic,), _CREATE_MS), 7).topics
                assert answer.error_code in (0, *_NOT_NOW), answer
                return answer.error_code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
            return False

        until(create, f"topic {name}")

    def topics(self, number: int) -> dict[str, str]:
        """The topics that a broker knows, and their ids."""
        answer = ask(self.nodes[number].bootstrap_servers, MetadataRequest(None), 12)
        return {topic.name: uuid_text(topic.topic_id) for topic in answer.topics}

    def wait_for_topics(self, names: set[str], *, at: int) -> dict[str, str]:
        """Until a broker knows these topics, and no others."""
        known: dict[str, str] = {}

        def find() -> dict[str, str] | None:
            nonlocal known
            with suppress(OSError, Closed):
                known = self.topics(at)
            return known if set(known) == names else None

        return until(find, f"node {at} to know {names}")

    # --- replicas -----------------------------------------------------------------------------------------------------

    @property
    def bootstrap_servers(self) -> str:
        """Of all brokers, whether they run or not."""
        return ",".join(
            node.bootstrap_servers for node in self.nodes.values() if "broker" in node.settings["process.roles"]
        )

    def partitions(self, topic: str, *, at: int) -> list[Any]:
        """The partitions of a topic as a broker knows them, in order."""
        wanted = MetadataRequest.MetadataRequestTopic(name=topic)
        request = MetadataRequest((wanted,), allow_auto_topic_creation=False)
        (found,) = ask(self.nodes[at].bootstrap_servers, request, 12).topics
        return sorted(found.partitions, key=lambda each: each.partition_index)

    def leaders(self, topic: str) -> list[int]:
        """The leaders of a topic's partitions, as the first broker that runs knows them."""
        return [each.leader_id for each in self.partitions(topic, at=self.running[0])]

    @property
    def running(self) -> list[int]:
        """The brokers that run, and are not paused."""
        return [
            number
            for number, node in self.nodes.items()
            if node.running and number not in self.paused and "broker" in node.settings["process.roles"]
        ]

    def wait_in_sync(self, topic: str) -> None:
        """Until every broker that runs knows that all replicas of a topic are in sync."""

        def find() -> bool:
            with suppress(OSError, Closed):
                running = [number for number, node in self.nodes.items() if node.running]
                views = [self.partitions(topic, at=number) for number in running]
                return all(
                    view and all(set(each.isr_nodes) == set(each.replica_nodes) for each in view) for view in views
                )
            return False

        until(find, f"all replicas of {topic} in sync")

    def elect_preferred(self, topic: str) -> None:
        """Let the first replica of each partition lead it, and wait until all brokers know."""
        at = self.running[0]
        wanted = ElectLeadersRequest.TopicPartitions(topic, tuple(range(len(self.partitions(topic, at=at)))))

        def find() -> bool:
            with suppress(OSError, Closed):
                request = ElectLeadersRequest(_PREFERRED, (wanted,), _ELECT_MS)
                answer = ask(self.nodes[at].bootstrap_servers, request, 2)
                results = [each for found in answer.replica_election_results for each in found.partition_result]
                is_done = not answer.error_code and all(each.error_code in _IN_PLACE for each in results)
                views = [self.partitions(topic, at=number) for number in self.running]
                return is_done and all(each.leader_id == each.replica_nodes[0] for view in views for each in view)
            return False

        until(find, f"the preferred leaders of {topic}")

    def move_leaders(self, topic: str) -> None:
        """Let the second replica of each partition become the first, and lead it."""
        at = self.running[0]
        kind = AlterPartitionReassignmentsRequest
        moved = tuple(
            kind.ReassignablePartition(each.partition_index, (*each.replica_nodes[1:], each.replica_nodes[0]))
            for each in self.partitions(topic, at=at)
        )
        request = kind(_ELECT_MS, topics=(kind.ReassignableTopic(topic, moved),))
        (answer,) = ask(self.nodes[at].bootstrap_servers, request, 0).responses
        assert not any(each.error_code for each in answer.partitions), answer
        self.elect_preferred(topic)

    def check_equal_logs(self, *topics: str) -> None:
        """All replicas of these topics come to have the same bytes, and Apache Kafka can read them."""
        written: list[Path] = []
        for topic in topics:
            self.wait_in_sync(topic)
            for each in self.partitions(topic, at=self.running[0]):
                name = f"{topic}-{each.partition_index}"
                folders = [self.nodes[number].data_dir / name for number in each.replica_nodes]
                until(lambda folders=folders: len({_log(folder) for folder in folders}) == 1, f"equal logs of {name}")
                if _log(folders[0]):
                    written.append(min(folders[0].glob("*.log")))
        if written:
            assert dump_log(written, timeout_s=WAIT_S).count("baseOffset: 0 ") == len(written)

    # --- files --------------------------------------------------------------------------------------------------------

    def directory_id(self, number: int) -> str:
        return read_properties((self.nodes[number].data_dir / "meta.properties").read_text())["directory.id"]

    def snapshots(self, number: int) -> list[int]:
        """The end offsets of a node's snapshots, without that of formatting."""
        files = (self.nodes[number].data_dir / METADATA_DIR).glob("*.checkpoint")
        return sorted(offset for file in files if (offset := int(file.name.partition("-")[0])))

    def metadata_log(self, number: int) -> dict[int, bytes]:
        """The batches of a node's metadata log, by their base offsets."""
        files = sorted((self.nodes[number].data_dir / METADATA_DIR).glob("*.log"))
        batches = [batch for file in files for batch in split_batches(file.read_bytes())]
        return {batch.base_offset: bytes(batch.data) for batch in batches if isinstance(batch, BatchView)}

    # --- Apache Kafka's tool ------------------------------------------------------------------------------------------

    def tool(
        self,
        *arguments: str,
        at: int,
        config_of: int | None = None,
        more: Mapping[str, str] = MappingProxyType({}),
        check: bool = True,
    ) -> str:
        """What kafka-metadata-quorum prints that asks a controller. `more` are settings of the tool."""
        where = self.controller_options(at, config_of, more)
        return tool(METADATA_QUORUM, *where, *arguments, timeout_s=WAIT_S, check=check)

    def controller_options(
        self, at: int, config_of: int | None = None, more: Mapping[str, str] = MappingProxyType({})
    ) -> tuple[str, ...]:
        """How a tool is told which controller to ask. To add a controller, it has to know the settings of that node."""
        settings = dict(self._login.client_properties if self._login else {}) | dict(more)
        path, text = self._directory / "tool.properties", "".join(f"{name}={text}\n" for name, text in settings.items())
        if config_of is not None:
            node = self.nodes[config_of]
            path, text = node.directory / "tool.properties", node.write_properties().read_text() + text
        path.write_text(text)
        return "--bootstrap-controller", self.nodes[at].controller_servers, "--command-config", str(path)


def until(find: Callable[[], T | None], what: str) -> T:
    """The first thing that is found. AssertionError if that takes too long."""
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        if found := find():
            return found
        time.sleep(_POLL_S)
    raise AssertionError(f"waited {WAIT_S} s for {what}")


def ask(server: str, request: object, version: int) -> Any:
    client = RawClient.at(server)
    try:
        return client.ask(request, version)
    finally:
        client.close_all()


def _is_in_sync(partition: Any) -> bool:
    return set(partition.isr_nodes) == set(partition.replica_nodes)


def _joined(listeners: Mapping[str, str]) -> str:
    return ",".join(f"{name}://{address}" for name, address in listeners.items())


def _log(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.glob("*.log")))


def _replicas(rows: Any) -> tuple[Replica, ...]:
    return tuple(Replica(each.replica_id, uuid_text(each.replica_directory_id), each.log_end_offset) for each in rows)


def _directory_id(number: int) -> str:
    return uuid_text(bytes([number] * 16))
