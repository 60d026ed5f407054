"""One run: clients work, nodes are sampled, and in the end the figures and the promises to clients are judged."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.interop.node.brokers import OTTLA
from tests.interop.programs import compiled
from tests.interop.quorum.cluster_load import PAUSE_S, SETTINGS, ClusterLoad
from tests.interop.quorum.members import Quorum
from tests.interop.serving import OttlaServe
from tools.soak.growth import MEASURES
from tools.soak.sampling import Sample, sample

__all__ = ["Report", "retention_settings", "run", "warm_up_s"]

_REPLICAS: Final = 3
_SAMPLES: Final = 240
_INTERVAL_MIN_S: Final = 1.0
_LINES: Final = 40
_LINE_MIN_S: Final = 15.0
_RETENTION_S: Final = (60.0, 300.0)
"""At least and at most. Clients on a busy machine are late by less."""
_SEGMENTS: Final = 4
"""So many of each partition are kept."""

Say = Callable[[str], None]


@dataclass
class Report:
    samples: Mapping[int, list[Sample]]
    """By the ids of nodes."""
    records: int = 0
    violations: list[str] = field(default_factory=list)
    """What was promised to a client and is not so."""


def retention_settings(seconds: float) -> dict[str, str]:
    """Settings of nodes with which disks come to rest within `warm_up_s`."""
    at_least_s, at_most_s = _RETENTION_S
    retention_ms = round(1000 * min(max(seconds / 24, at_least_s), at_most_s))
    segment_ms = retention_ms // _SEGMENTS
    checks_ms = segment_ms // 2
    return {
        "log.retention.ms": str(retention_ms),
        "log.roll.ms": str(segment_ms),
        "log.retention.check.interval.ms": str(checks_ms),
        "log.initial.task.delay.ms": str(checks_ms),
        "log.segment.delete.delay.ms": str(checks_ms),
        "log.cleaner.backoff.ms": str(checks_ms),
        "log.cleaner.delete.retention.ms": str(retention_ms),
        "share.coordinator.state.topic.prune.interval.ms": str(segment_ms),
    }


def warm_up_s(settings: Mapping[str, str]) -> float:
    """How long it takes until as much is deleted as is written."""
    steps = ("log.retention.ms", "log.roll.ms", "log.retention.check.interval.ms", "log.segment.delete.delay.ms")
    return sum(int(settings[step]) for step in steps) / 1000


def run(
    nodes: int, *, seconds: float, directory: Path, pause_s: float = PAUSE_S, say: Say = lambda text: None
) -> Report:
    """Sample a new cluster for so long, once it is warm. Violations are in the report, too, if they end it early."""
    compiled("4.3.1")  # which takes a while
    numbers = range(1, nodes + 1)
    voters = dict.fromkeys(numbers, OTTLA)
    report = Report({number: [] for number in numbers})
    settings: dict[str, Any] = SETTINGS | retention_settings(seconds)
    with Quorum(directory / "nodes", voters=voters, **settings) as quorum:
        load = ClusterLoad(
            quorum.bootstrap_servers, directory / "clients", replicas=_REPLICAS, does_expire=True, pause_s=pause_s
        )
        try:
            with load:
                load.wait_for_progress()
                say(f"clients work, nodes warm up: {load.progress()}")
                _watch(quorum, load, Report({number: [] for number in numbers}), warm_up_s(settings), say)
                say("nodes are sampled")
                _watch(quorum, load, report, seconds, say)
                report.records = load.producers.count()
                say(f"clients end: {load.progress()}")
                report.violations += load.violations()
            quorum.check_health()
        except AssertionError as error:  # a client or a node has ended, or something that was waited for has not come
            report.violations.append(str(error))
    return report


def _watch(quorum: Quorum, load: ClusterLoad, report: Report, seconds: float, say: Say) -> None:
    """Sample all nodes at equal intervals, and tell now and then how far everybody is."""
    interval_s = max(seconds / _SAMPLES, _INTERVAL_MIN_S)
    line_s = max(seconds / _LINES, _LINE_MIN_S)
    began_s = told_s = time.monotonic()
    for number in range(1, int(seconds / interval_s) + 1):
        time.sleep(max(0.0, began_s + number * interval_s - time.monotonic()))
        for node_id, samples in report.samples.items():
            node = quorum.nodes[node_id]
            assert isinstance(node, OttlaServe)
            assert node.running, f"node {node_id} has ended: {node.log[-2_000:]}"
            samples.append(sample(node.pid, node.data_dir))
        if time.monotonic() >= told_s + line_s:
            told_s = time.monotonic()
            say(f"{(told_s - began_s) / 60:.1f} of {seconds / 60:g} min: {_figures(report)}; {load.progress()}")


def _figures(report: Report) -> str:
    """The newest sample of each node."""
    return "; ".join(
        f"node {node_id} {', '.join(each.text(value) for each, value in zip(MEASURES, samples[-1], strict=True))}"
        for node_id, samples in report.samples.items()
    )
