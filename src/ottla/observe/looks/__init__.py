"""One function for each kind of sample: asks the cluster, and gives what was seen.

A look that fails as a whole raises ClientError. What fails for one thing among several is a sighting with an error.
"""

from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from ottla.observe.looks.brokers import look_at_cluster, look_at_configs, look_at_log_dirs, look_at_quorum
from ottla.observe.looks.groups import look_at_groups
from ottla.observe.looks.inside import look_at_share_metrics, look_at_share_windows
from ottla.observe.looks.offsets import look_at_lag, look_at_share_offsets
from ottla.observe.looks.share_state import look_at_share_state
from ottla.observe.looks.topics import look_at_topics
from ottla.observe.looks.transactions import look_at_transactions
from ottla.observe.memory import Moment
from ottla.observe.sighting import Sighting

__all__ = ["LOOKS", "Look"]

Look = Callable[[Moment], Awaitable[Iterable[Sighting]]]

LOOKS: Final[dict[str, Look]] = {
    "cluster": look_at_cluster,
    "topic": look_at_topics,
    "group": look_at_groups,
    "quorum": look_at_quorum,
    "lag": look_at_lag,
    "share_offsets": look_at_share_offsets,
    "share_state": look_at_share_state,
    "configs": look_at_configs,
    "log_dirs": look_at_log_dirs,
    "transactions": look_at_transactions,
    "share_metrics": look_at_share_metrics,
    "share_window": look_at_share_windows,
}
