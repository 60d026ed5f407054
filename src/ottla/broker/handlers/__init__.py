"""The handlers: one module for each API, with its name; APIs that are answered alike share one.

A handler module has

* `handle(node, request) -> Answer`: see `ottla.broker.network.request` for what an answer can be; `node` is what the
  API's family needs of a node (`ports`);
* `refuse(request, code, message)`: the API's own response with one error for the whole request;
* a docstring: what it does, what differs between versions, what is known to be missing;
* `API_KEY` and `VERSIONS`, the lowest and the highest version, if the module has one API; `ADVERTISED_LOW` if a lower
  version is advertised, `UNSTABLE_HIGH` if a higher one can be served.

The table below has every module with its versions, so that a node knows what it serves without importing any: a handler
is loaded with the first request of its API.
"""

from __future__ import annotations

from importlib import import_module
from typing import Final, NamedTuple

from ottla.broker.network.dispatch import Api
from ottla.wire import frames

__all__ = ["SERVED", "Served", "load_api"]


class Served(NamedTuple):
    """An API that a module here handles."""

    module: str
    low: int
    high: int
    advertised_low: int | None = None
    unstable_high: int | None = None
    """Served in place of `high` with unstable.api.versions.enable."""

    def high_of(self, *, is_unstable: bool) -> int:
        return self.high if self.unstable_high is None or not is_unstable else self.unstable_high


SERVED: Final[dict[int, Served]] = {
    0: Served("produce", 3, 13, 0),
    1: Served("fetch", 4, 18),
    2: Served("list_offsets", 1, 11),
    3: Served("metadata", 0, 13),
    8: Served("offset_commit", 2, 10),
    9: Served("offset_fetch", 1, 10),
    10: Served("find_coordinator", 0, 6),
    11: Served("join_group", 0, 9),
    12: Served("heartbeat", 0, 4),
    13: Served("leave_group", 0, 5),
    14: Served("sync_group", 0, 5),
    15: Served("describe_groups", 0, 6),
    16: Served("list_groups", 0, 5),
    17: Served("sasl_handshake", 0, 1),
    18: Served("api_versions", 0, 5),
    19: Served("controller", 2, 7),
    20: Served("controller", 1, 6),
    21: Served("delete_records", 0, 2),
    22: Served("init_producer_id", 0, 5, unstable_high=6),
    23: Served("offset_for_leader_epoch", 2, 4),
    24: Served("add_partitions_to_txn", 0, 5),
    25: Served("add_offsets_to_txn", 0, 4),
    26: Served("end_txn", 0, 5),
    27: Served("write_txn_markers", 1, 2),
    28: Served("txn_offset_commit", 0, 6),
    29: Served("acls", 1, 3),
    30: Served("acls", 1, 3),
    31: Served("acls", 1, 3),
    32: Served("describe_configs", 1, 4),
    33: Served("alter_configs", 0, 2),
    34: Served("alter_replica_log_dirs", 1, 2),
    35: Served("describe_log_dirs", 1, 5),
    36: Served("sasl_authenticate", 0, 2),
    37: Served("controller", 0, 3),
    38: Served("delegation_tokens", 1, 3),
    39: Served("delegation_tokens", 1, 2),
    40: Served("delegation_tokens", 1, 2),
    41: Served("delegation_tokens", 1, 3),
    42: Served("delete_groups", 0, 3),
    43: Served("controller", 0, 2),
    44: Served("incremental_alter_configs", 0, 1),
    45: Served("controller", 0, 1),
    46: Served("controller", 0, 0),
    47: Served("offset_delete", 0, 0),
    48: Served("describe_client_quotas", 0, 1),
    49: Served("controller", 0, 1),
    50: Served("describe_user_scram_credentials", 0, 0),
    51: Served("controller", 0, 0),
    52: Served("raft", 0, 2),
    53: Served("raft", 0, 1),
    54: Served("raft", 0, 1),
    55: Served("describe_quorum", 0, 2),
    56: Served("controller", 2, 3),
    57: Served("controller", 0, 2),
    58: Served("envelope", 0, 0),
    59: Served("raft", 0, 1),
    60: Served("describe_cluster", 0, 2),
    61: Served("describe_producers", 0, 0),
    62: Served("controller", 0, 4),
    63: Served("controller", 0, 2),
    64: Served("controller", 0, 0),
    65: Served("describe_transactions", 0, 0),
    66: Served("list_transactions", 0, 2),
    67: Served("controller", 0, 0),
    68: Served("consumer_group_heartbeat", 0, 1),
    69: Served("group_describe", 0, 1),
    70: Served("controller", 0, 0),
    71: Served("get_telemetry_subscriptions", 0, 0),
    72: Served("push_telemetry", 0, 0),
    73: Served("controller", 0, 0),
    74: Served("list_config_resources", 0, 1),
    75: Served("describe_topic_partitions", 0, 0),
    76: Served("share_group_heartbeat", 1, 1),
    77: Served("group_describe", 1, 1),
    78: Served("share_fetch", 1, 2),
    79: Served("share_acknowledge", 1, 2),
    80: Served("add_raft_voter", 0, 1),
    81: Served("remove_raft_voter", 0, 0),
    82: Served("raft", 0, 0),
    83: Served("share_state", 0, 0),
    84: Served("share_state", 0, 0),
    85: Served("share_state", 0, 1),
    86: Served("share_state", 0, 0),
    87: Served("share_state", 0, 1),
    88: Served("streams_group_heartbeat", 0, 1),
    89: Served("streams_group_describe", 0, 1),
    90: Served("describe_share_group_offsets", 0, 1),
    91: Served("share_group_offsets", 0, 0),
    92: Served("share_group_offsets", 0, 0),
    93: Served("streams_group_topology_description_update", 0, 0),
    94: Served("controller", 0, 0),
}
"""API key -> its handler."""


def load_api(key: int, is_unstable: bool = False) -> Api | None:
    """The API with its handler, whose module is imported now; None if there is no handler."""
    served = SERVED.get(key)
    if served is None:
        return None
    module = import_module(f"{__name__}.{served.module}")
    high = served.high_of(is_unstable=is_unstable)
    return Api(key, frames.api_names()[key], served.low, high, module.handle, module.refuse)
