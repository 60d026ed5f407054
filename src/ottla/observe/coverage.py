"""The coverage of a cluster: what its nodes' APIs and its finalized features make visible.

A cluster may have an API that this client is not authorized to use, so `coverage` is asked after a probe has succeeded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from ottla.health.facts import Coverage
from ottla.observe.probe_result import ProbeResult, probe_result

__all__ = ["NO_API", "apis_of_all", "coverage", "lists_types"]

NO_API: Final = -1


class Need(NamedTuple):
    """The API, and its lowest version, that shows something."""

    what: str
    api: str
    version: int
    why: str


NEEDS: Final = (
    Need("group", "ListGroups", 0, "this cluster does not list groups"),
    Need("group.assignments", "ConsumerGroupDescribe", 0,
         "this cluster has classic groups only: ConsumerGroupDescribe came with Kafka 3.7"),
    Need("group.share", "ShareGroupDescribe", 1, "this cluster has no share groups: ShareGroupDescribe v1 came with "
         "Kafka 4.1"),
    Need("group.streams", "StreamsGroupDescribe", 0,
         "this cluster has no streams groups: StreamsGroupDescribe came with Kafka 4.1"),
    Need("group.task_offsets", "StreamsGroupDescribe", 1, "task offsets need Kafka 4.4 (StreamsGroupDescribe v1)"),
    Need("group.topology_description", "StreamsGroupDescribe", 1,
         "topology descriptions need Kafka 4.4 (StreamsGroupDescribe v1)"),
    Need("share_offsets", "DescribeShareGroupOffsets", 0,
         "this cluster has no share groups: DescribeShareGroupOffsets came with Kafka 4.1"),
    Need("share_offsets.lag", "DescribeShareGroupOffsets", 1, "lag needs Kafka 4.2 (DescribeShareGroupOffsets v1)"),
    Need("quorum", "DescribeQuorum", 0, "this cluster does not support DescribeQuorum"),
    Need("quorum.fetch_times", "DescribeQuorum", 1, "fetch times of voters need Kafka 3.3 (DescribeQuorum v1)"),
    Need("log_dirs", "DescribeLogDirs", 0, "this cluster does not support DescribeLogDirs"),
    Need("log_dirs.disk", "DescribeLogDirs", 4, "disk sizes need Kafka 3.3 (DescribeLogDirs v4)"),
    Need("transactions", "ListTransactions", 0, "ListTransactions came with Kafka 3.0"),
)  # fmt: skip
SHARE: Final = frozenset({"group.share", "share_offsets", "share_offsets.lag"})
SHARE_OFF: Final = "share groups are disabled (share.version 0; Kafka 4.2 enables them by default)"


def apis_of_all(nodes: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """The highest version of each API that every one of the nodes has."""
    tables = list(nodes)
    names = {name for table in tables for name in table}
    return {name: min(table.get(name, NO_API) for table in tables) for name in names}


def coverage(kind: str, apis: Mapping[str, int], features: Mapping[str, int]) -> Iterator[ProbeResult]:
    """One result for each thing that a successful probe of this kind shows or cannot show, with the reason.

    `features` are those that are finalized.
    """
    needs = [each for each in NEEDS if each.what.partition(".")[0] == kind] if apis else []
    for need in needs:
        is_off = need.what in SHARE and features.get("share.version") == 0
        is_there = apis.get(need.api, NO_API) >= need.version
        yield _told(need.what, SHARE_OFF if is_off else None if is_there else need.why)
    if all(each.what != kind for each in needs):
        yield _told(kind, None)


def _told(what: str, why: str | None) -> ProbeResult:
    return probe_result(what, Coverage(what=what, visible=why is None, why=why))


def lists_types(apis: Mapping[str, int]) -> bool:
    return apis.get("ListGroups", 5) >= 5
