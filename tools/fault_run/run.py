"""One run: a fault, what the cluster says meanwhile and afterwards, the next fault; at the end, the evidence."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import ottla.testing
from ottla.client.address import Peer, parse_address
from ottla.client.cluster import QUORUM_REQUEST, QuorumDescription, read_quorum
from ottla.client.errors import ClientError
from ottla.testing import Cluster, ClusterError
from ottla.testing.clusters import inspection
from ottla.testing.clusters.nodes import wait_until
from tools.fault_run.evidence import batches, fencings, unequal
from tools.fault_run.plan import Fault, Hit
from tools.fault_run.writer import Writer

__all__ = ["Outage", "Report", "run"]

ELECTION_MAX_S: Final = 30.0
SESSION_MS: Final = 9000
HEARTBEAT_MS: Final = 2000
"""Kafka's defaults. A session begins with the last heartbeat that was heard."""
EPOCHS_PER_FAULT_MAX: Final = 3
Say = Callable[[str], None]


class Outage(NamedTuple):
    """A node did not hear, or was not heard by, all others."""

    node_id: int
    began_ms: int
    ended_ms: int
    is_dead: bool = False
    """Its process was gone, which others notice at once."""


@dataclass
class Report:
    faults: int = 0
    elections_s: list[float] = field(default_factory=list)
    """From each fault of a leader to the next leader."""
    truths_s: list[float] = field(default_factory=list)
    """From each election, and from the end of each fault, until every broker told the truth."""
    answered: int = 0
    unanswered: int = 0
    epochs: int = 0
    fencings: int = 0
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.faults} faults, {len(self.elections_s)} of leaders (next one after {_spread(self.elections_s)}); "
            f"the truth after {_spread(self.truths_s)}; epoch +{self.epochs}; {self.fencings} fencings; "
            f"{self.answered} changes answered, {self.unanswered} not; {len(self.problems)} problems"
        )


def _spread(seconds: list[float]) -> str:
    if not seconds:
        return "-"
    middle = sorted(seconds)[len(seconds) // 2]
    return f"{middle:.2f} s, at most {max(seconds):.2f} s"


def run(
    faults: Iterable[Fault],
    *,
    truth_max_s: float,
    controllers: int | None = None,
    data_dir: Path | None = None,
    say: Say = lambda text: None,
) -> Report:
    """Do faults to the controllers of a new cluster. What should not be is in the report's `problems`."""
    report = Report()
    with ottla.testing.cluster(controllers=controllers, data_dir=data_dir) as cluster:
        writer = Writer(cluster.bootstrap_servers)
        writer.start()
        outages: list[Outage] = []
        first_epoch = cluster.quorum().leader_epoch
        try:
            for number, fault in enumerate(faults, 1):
                before = len(report.problems)
                outages += _one(cluster, fault, report, truth_max_s, partial(_say_number, say, number))
                for problem in report.problems[before:]:
                    say(f"     PROBLEM {problem}")
        except ClusterError as error:
            report.problems.append(f"the cluster has not come back: {error}")
            return report
        finally:
            writer.stop()
        report.answered, report.unanswered = len(writer.answered), len(writer.unanswered)
        report.epochs = cluster.quorum().leader_epoch - first_epoch
        _look_back(cluster, writer, outages, report)
    return report


def _say_number(say: Say, number: int, text: str) -> None:
    say(f"{number:4} {datetime.now(UTC):%H:%M:%S} {text}")


def _one(cluster: Cluster, fault: Fault, report: Report, truth_max_s: float, say: Say) -> list[Outage]:
    cluster.wait_in_sync()
    before = cluster.quorum()
    leader = before.leader_id
    followers = [each.node_id for each in cluster if each.is_controller and each.node_id != leader]
    if report.faults % 2:
        followers.reverse()
    began_s, began_ms = time.monotonic(), _now_ms()
    hit = fault.do(cluster, leader, followers)
    report.faults += 1
    told = [str(fault), f"node {leader if fault.does_hit_leader else followers[0]}"]
    try:
        if leader in hit.silent:
            told.append(_watch_election(cluster, leader, hit, report, truth_max_s))
        time.sleep(max(0.0, began_s + fault.seconds - time.monotonic()))
    finally:
        hit.undo()
    _wait_for_listeners(cluster)
    ended_s = time.monotonic()
    told.append(f"back after {_truth(cluster, frozenset(), report, truth_max_s, f'after {fault}'):.2f} s")
    cluster.wait_in_sync()
    after = cluster.quorum()
    told.append(f"in sync after {time.monotonic() - ended_s:.2f} s")
    told.append(f"{after.leader_id} leads epoch {after.leader_epoch}")
    if not 0 <= after.leader_epoch - before.leader_epoch <= EPOCHS_PER_FAULT_MAX:
        report.problems.append(f"{fault}: the epoch went from {before.leader_epoch} to {after.leader_epoch}")
    say(", ".join(told))
    return [Outage(each, began_ms, _now_ms(), fault.kind == "kill") for each in hit.out_of_reach]


def _watch_election(cluster: Cluster, leader: int, hit: Hit, report: Report, truth_max_s: float) -> str:
    began_s = time.monotonic()

    def has_other_leader() -> bool:
        claim = cluster.quorum_now()
        return claim is not None and claim.leader_id != leader

    wait_until(has_other_leader, "nobody else leads the quorum", ELECTION_MAX_S)
    took_s = time.monotonic() - began_s
    report.elections_s.append(took_s)
    truth_s = _truth(cluster, hit.silent, report, truth_max_s, "after the election")
    return f"next leader after {took_s:.2f} s, known after {truth_s:.2f} s more"


def _truth(cluster: Cluster, without: frozenset[int], report: Report, truth_max_s: float, when: str) -> float:
    """How long it takes until every broker tells the truth about the quorum; a problem if that is too long."""
    began_s = time.monotonic()
    asked = [each for each in cluster if each.node_id not in without]
    lies: list[str] = []

    def is_true() -> bool:
        lie = _lie(cluster, [each.node_id for each in asked])
        lies.extend([f"{lie} ({time.monotonic() - began_s:.2f} s)"] if lie else [])
        return not lie

    try:
        wait_until(is_true, "the truth is not told", ELECTION_MAX_S)
    except ClusterError as error:
        report.problems.append(f"{when}: {error}")
    took_s = time.monotonic() - began_s
    if took_s > truth_max_s:
        report.problems.append(f"{when}: the truth took {took_s:.2f} s; before: {'; '.join(lies[-3:])}")
    report.truths_s.append(took_s)
    return took_s


def _lie(cluster: Cluster, nodes: list[int]) -> str:
    """What is not true of what brokers say about the quorum; nothing if all is."""
    claim = cluster.quorum_now()
    if claim is None:
        return "nobody leads"
    for node_id in nodes:
        if not (cluster[node_id].is_broker and cluster[node_id].is_ready):
            continue  # it may have been started, and wait for the end of its former session
        told = _told_by(cluster[node_id].bootstrap_servers)
        if told is None:
            return f"{node_id} does not answer"
        if (told.leader_id, told.leader_epoch) != (claim.leader_id, claim.leader_epoch):
            return f"{node_id} says {told.leader_id} leads epoch {told.leader_epoch}"
        ends = {each.node_id: each.log_end_offset for each in (*told.voters, *told.observers)}
        behind = [each for each in nodes if ends.get(each, -1) < claim.high_watermark]
        if behind:
            return f"{node_id} says that {behind} of {ends} are below {claim.high_watermark}"
    return ""


def _told_by(address: str) -> QuorumDescription | None:
    """DescribeQuorum of a broker, which asks the leader."""
    try:
        return read_quorum(Peer(parse_address(address)), inspection.ask(address, QUORUM_REQUEST))
    except ClientError:
        return None


def _wait_for_listeners(cluster: Cluster) -> None:
    """Wait until all processes have come so far that they listen."""

    def listens() -> bool:
        try:
            for node in cluster:
                if node.is_controller:
                    inspection.ask(node.controller_bootstrap, QUORUM_REQUEST, **cluster.controller_login)
        except ClientError:
            return False
        return True

    wait_until(listens, "not all controllers listen", ELECTION_MAX_S)


def _look_back(cluster: Cluster, writer: Writer, outages: list[Outage], report: Report) -> None:
    """Check what was written, on every node and in every log."""
    cluster.wait_in_sync()
    answered = set(writer.answered)
    for node in (each for each in cluster if each.is_broker):
        views = inspection.partitions(node.bootstrap_servers)
        if views is None:
            report.problems.append(f"node {node.node_id} does not tell what it has")
        elif lost := sorted(answered - {each.topic for each in views}):
            report.problems.append(f"node {node.node_id} has lost {len(lost)} topics: {lost[:5]}")
    ended_ms = _now_ms()
    cluster.stop()
    logs = [batches(each.data_dir) for each in cluster]
    if different := unequal(logs):
        report.problems.append(f"the metadata logs differ at {different[:5]}")
    fenced = [each for each in fencings(cluster[1].data_dir) if each.at_ms < ended_ms]
    report.fencings = len(fenced)
    for each in fenced:
        if not any(is_reason(outage, each.broker_id, each.at_ms) for outage in outages):
            when = datetime.fromtimestamp(each.at_ms / 1000, UTC)
            report.problems.append(f"broker {each.broker_id} was fenced at {when:%H:%M:%S}, though it could be heard")


def is_reason(outage: Outage, broker_id: int, at_ms: int) -> bool:
    """Whether a broker was out of reach for as long as it takes to be fenced. It is heard again with a heartbeat."""
    earliest_ms = outage.began_ms + (0 if outage.is_dead else SESSION_MS - HEARTBEAT_MS)
    return outage.node_id == broker_id and earliest_ms <= at_ms <= outage.ended_ms + HEARTBEAT_MS


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
