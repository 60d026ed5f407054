"""Probes: one function for each kind of sample, which asks the cluster and returns results.

A probe that fails as a whole raises ClientError. If only some entities fail, each of them has a result with an error.
"""

from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from ottla.observe.memory import ProbeContext
from ottla.observe.probe_result import ProbeResult
from ottla.observe.probes.access import probe_access
from ottla.observe.probes.brokers import probe_cluster, probe_configs, probe_log_dirs, probe_quorum
from ottla.observe.probes.groups import probe_groups
from ottla.observe.probes.offsets import probe_lag, probe_share_offsets
from ottla.observe.probes.share_metrics import probe_share_metrics, probe_share_windows
from ottla.observe.probes.share_state import probe_share_state
from ottla.observe.probes.topics import probe_topics
from ottla.observe.probes.transactions import probe_transactions

__all__ = ["PROBES", "Probe"]

Probe = Callable[[ProbeContext], Awaitable[Iterable[ProbeResult]]]

PROBES: Final[dict[str, Probe]] = {
    "cluster": probe_cluster,
    "topic": probe_topics,
    "group": probe_groups,
    "quorum": probe_quorum,
    "lag": probe_lag,
    "share_offsets": probe_share_offsets,
    "share_state": probe_share_state,
    "configs": probe_configs,
    "log_dirs": probe_log_dirs,
    "transactions": probe_transactions,
    "share_metrics": probe_share_metrics,
    "share_window": probe_share_windows,
    "access": probe_access,
}
