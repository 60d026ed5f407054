"""One run: a fault, its end, the clients that must go on, the next fault; in the end, what has become of everything."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.interop.programs import compiled
from tests.interop.quorum.cluster_load import (
    ATOMIC,
    COORDINATORS,
    FLOW,
    PAUSE_S,
    READERS,
    SETTINGS,
    SHARE_GROUP,
    TOPICS,
    ClusterLoad,
)
from tests.interop.quorum.links import LinkedQuorum
from tests.interop.quorum.word_count import GROUP
from tools.chaos.leadership import GROUPS, PARTITIONS, QUORUM, LeadershipWatch
from tools.fault_run.plan import QUORUM_FAULTS, RESTARTS, Fault, plan

__all__ = ["Report", "run"]

_REPLICAS: Final = 3
_FAULTS_PER_SECOND_MAX: Final = 1
_LOOK_S: Final = 3.0
"""So long that the watch has looked, and found it."""
_MUST_LEAD: Final = (QUORUM, PARTITIONS, GROUPS)

Say = Callable[[str], None]


@dataclass
class Report:
    kinds: Mapping[int, str]
    faults: int = 0
    records: int = 0
    led: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Role -> kind of node -> in how many looks, one a second, it led something of that role."""
    violations: list[str] = field(default_factory=list)

    @property
    def never_led(self) -> list[str]:
        """Kinds of nodes that never had one of the roles that matter."""
        kinds = sorted(set(self.kinds.values()))
        return [f"{kind}: {role}" for role in _MUST_LEAD for kind in kinds if not self.led.get(role, {}).get(kind)]

    def __str__(self) -> str:
        nodes = ", ".join(f"{number} {kind}" for number, kind in self.kinds.items())
        led = "; ".join(
            f"{role} by {', '.join(f'{kind} {looks} s' for kind, looks in sorted(kinds.items()))}"
            for role, kinds in sorted(self.led.items())
        )
        return (
            f"nodes {nodes}: {self.faults} faults, {self.records} records written; led: {led}; "
            f"{len(self.violations)} violations"
        )


def run(
    kinds: Sequence[str],
    *,
    seconds: float,
    seed: int,
    directory: Path,
    pause_s: float = PAUSE_S,
    say: Say = lambda text: None,
) -> Report:
    """Begin faults on a new cluster for so long. What should not be is in the report's `violations`."""
    compiled("4.3.1")  # which takes a while
    report = Report(dict(enumerate(kinds, 1)))
    with LinkedQuorum(directory / "nodes", voters=report.kinds, **SETTINGS) as quorum:
        try:
            _run_on(quorum, report, seconds, seed, directory / "clients", pause_s, say)
        except AssertionError as error:  # something that was waited for has not come
            report.violations.append(str(error))
    return report


def _run_on(
    quorum: LinkedQuorum, report: Report, seconds: float, seed: int, directory: Path, pause_s: float, say: Say
) -> None:
    watch = LeadershipWatch(
        quorum,
        topics=TOPICS,
        groups=(READERS, SHARE_GROUP, FLOW, GROUP),
        transactional_ids=(FLOW, ATOMIC),
        say=say,
    )
    report.led = watch.seen
    load = ClusterLoad(quorum.bootstrap_servers, directory, replicas=_REPLICAS, may_begin_anew=True, pause_s=pause_s)
    with load, watch:
        say(f"clients work: {load.progress()}")
        load.wait_for_progress()
        _let_each_kind_lead(quorum, watch, say)
        faults = plan(int(seconds * _FAULTS_PER_SECOND_MAX) + 1, seed, (*QUORUM_FAULTS, *RESTARTS))
        deadline_s = time.monotonic() + seconds
        while faults and time.monotonic() < deadline_s:
            _strike(quorum, load, faults.pop(0), report, say)
        say(f"no more faults: {load.progress()}")
        report.records = load.producers.count()
        report.violations += load.violations()
    quorum.check_equal_logs(*TOPICS)
    quorum.check_health()


def _let_each_kind_lead(quorum: LinkedQuorum, watch: LeadershipWatch, say: Say) -> None:
    """Leaders of partitions where they were placed, on all nodes; then one node of each kind leads the quorum."""
    _settle(quorum)
    for kind in watch.kinds_without(QUORUM):
        chosen = next(number for number in quorum.voters if quorum.kinds[number] == kind)
        if len(quorum.voters) == _REPLICAS:
            quorum.elect(chosen)
            say(f"node {chosen} ({kind}) was made to lead the quorum")
            time.sleep(_LOOK_S)


def _strike(quorum: LinkedQuorum, load: ClusterLoad, fault: Fault, report: Report, say: Say) -> None:
    """One fault; afterwards everything is in sync again, and every client has got further."""
    leader = quorum.wait_for_voters().leader_id
    followers = [number for number in quorum.voters if number != leader]
    if report.faults % 2:
        followers.reverse()
    target = leader if fault.does_hit_leader else followers[0]
    report.faults += 1
    say(f"{report.faults}. {fault}: node {target} ({quorum.kinds[target]})")
    hit = fault.do(quorum, leader, followers)
    try:
        time.sleep(fault.seconds)
    finally:
        hit.undo()
    ended_s = time.monotonic()
    quorum.wait_ready(*quorum.nodes)
    _settle(quorum)
    in_sync_s = time.monotonic() - ended_s
    load.wait_for_progress()
    say(f"   in sync after {in_sync_s:.1f} s, all clients go on after {time.monotonic() - ended_s:.1f} s")


def _settle(quorum: LinkedQuorum) -> None:
    """Wait until all replicas are in sync, and let the first of each partition lead it."""
    for topic in (*TOPICS, *COORDINATORS):
        quorum.wait_in_sync(topic)
        quorum.elect_preferred(topic)
