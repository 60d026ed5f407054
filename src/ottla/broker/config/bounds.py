"""Every bound of a node in one list: what a client can fill, how far, and what happens beyond.

All clients share the memory, files and time of a broker. Everything that grows with what clients send, or with how
slowly they read, has an entry here. An entry names the constant or the setting that has the value.
tests/hostile/test_bounds.py reaches each bound, and fails for an entry without a test.
"""

from __future__ import annotations

from importlib import import_module
from typing import Final, NamedTuple

__all__ = ["BOUNDS", "Bound"]


class Bound(NamedTuple):
    name: str
    of: str
    """What is bounded."""
    beyond: str
    """What happens to what is more."""
    home: str = ""
    """`module:NAME` of the constant."""
    setting: str = ""
    """Or the setting that gives it."""

    @property
    def value(self) -> int:
        """The value of a bound that is a constant."""
        module, _, name = self.home.partition(":")
        found: int = getattr(import_module(module), name)
        return found


_CONNECTION: Final = "ottla.broker.network.connection"

BOUNDS: Final = (
    # --- connections
    Bound("connections", "connections of a listener", "wait in the backlog", setting="max.connections"),
    Bound("connections-per-ip", "connections from one address", "closed at once", setting="max.connections.per.ip"),
    Bound("backlog", "connections not accepted yet", "refused by the kernel", setting="socket.listen.backlog.size"),
    Bound("files", "connections of all listeners, limited by the open files of the process", "wait in the backlog",
          "ottla.broker.network.file_limit:FILES_MAX"),
    Bound("accepts", "connections accepted in one turn of the event loop", "left for the next turn",
          "ottla.broker.network.listener:ACCEPTS_PER_TURN"),
    Bound("held-connections", "connections over the rate of their address that wait to be closed",
          "closed at once", "ottla.broker.network.listener:HELD_MAX"),
    Bound("idle", "time without a request, or with unread responses", "closed", setting="connections.max.idle.ms"),
    Bound("web-connections", "connections to the metrics page", "closed",
          "ottla.broker.network.web_server:CONNECTIONS_MAX"),
    Bound("viewers", "viewers of live traffic", "rejected", "ottla.broker.telemetry.traffic:VIEWERS_MAX"),
    Bound("viewer-rate", "frames per second that a viewer of live traffic is shown", "only a sample is shown",
          "ottla.broker.telemetry.traffic:FRAMES_PER_SECOND_MAX"),
    Bound("viewer-frames", "frames buffered for a viewer of live traffic", "the oldest are dropped",
          "ottla.broker.telemetry.traffic:RING_FRAMES_MAX"),
    Bound("viewer-bytes", "their bytes", "the oldest are dropped", "ottla.broker.telemetry.traffic:RING_BYTES_MAX"),
    Bound("viewer-pending", "requests shown to viewers whose response is outstanding",
          "the response of the oldest is not shown",
          "ottla.broker.telemetry.traffic:PENDING_MAX"),
    # --- what comes in
    Bound("frame", "size of a request", "closed", setting="socket.request.max.bytes"),
    Bound("receive", "bytes of one read", "left for the next turn", f"{_CONNECTION}:RECEIVE_BYTES"),
    Bound("queued-frames", "requests queued behind a delayed one", "not read", f"{_CONNECTION}:QUEUED_FRAMES_MAX"),
    Bound("queued-bytes", "their bytes", "not read", f"{_CONNECTION}:QUEUED_BYTES_MAX"),
    Bound("requests-bytes", "large requests in progress, in total", "not read until others finish",
          "ottla.broker.network.memory_pool:DEFAULT_BYTES", "queued.max.request.bytes"),
    Bound("requests-time", "time that an incomplete request may keep others waiting for this memory", "closed",
          "ottla.broker.network.memory_pool:HELD_MAX_MS"),
    Bound("client-ids", "cached client ids", "not cached", "ottla.broker.network.dispatch:CLIENT_IDS_MAX"),
    Bound("client-id-bytes", "their length", "not cached",
          "ottla.broker.network.dispatch:CLIENT_ID_BYTES_MAX"),
    # --- what goes out
    Bound("outgoing", "unread responses of a connection", "its further requests wait",
          f"{_CONNECTION}:OUTGOING_MAX_BYTES"),
    Bound("encrypted", "bytes that are encrypted for a connection and not sent", "left in the files of the log",
          "ottla.security.tls_socket:PIECE_BYTES"),
    Bound("fetch", "size of a Fetch response", "returned with the next one", setting="fetch.max.bytes"),
    Bound("open-files", "open segment files", "the least recently used is closed",
          "ottla.log.files:DEFAULT_OPEN_FILES_MAX"),
    # --- what waits and what is kept for clients
    Bound("waiting", "delayed requests", "answered at once, as if they had timed out",
          "ottla.broker.loop.delayed_operations:DELAYED_MAX"),
    Bound("refused-batches", "partitions of which a connection remembers a batch that was refused for now",
          "the oldest is forgotten", "ottla.broker.network.refused_batches:PARTITIONS_MAX"),
    Bound("encoded-topics", "versions and listeners for which encoded topics are cached", "the cache is cleared",
          "ottla.broker.controller.encoded_topics:FORMS_MAX"),
    Bound("deleted-topics", "time that the name of a deleted topic is remembered", "forgotten",
          "ottla.broker.controller.deleted_topics:REMEMBERED_MS"),
    Bound("fetch-sessions", "fetch sessions", "the stalest is evicted, or no session is created",
          setting="max.incremental.fetch.session.cache.slots"),
    Bound("fetch-session-partitions", "partitions in all of them", "no session is created",
          "ottla.broker.replicas.fetch_sessions:SESSION_PARTITIONS_MAX"),
    Bound("share-sessions", "share sessions", "SHARE_SESSION_LIMIT_REACHED", setting="group.share.max.share.sessions"),
    Bound("share-settings", "share groups whose settings are cached", "the cache is cleared",
          "ottla.broker.share.leader:SETTINGS_MAX"),
    Bound("share-counts", "share groups counted by name", "counted together", "ottla.broker.share.counts:GROUPS_MAX"),
    Bound("spared-groups", "large groups whose sizes are remembered, to spare their objects from garbage collection",
          "all are forgotten", "ottla.broker.coordinators.target_computations:SPARED_GROUPS_MAX"),
    Bound("pending-members", "members of a classic group that have an id but have not joined", "rejected",
          "ottla.core.groups.classic.group:PENDING_MEMBERS_MAX"),
    Bound("classic-members", "members of a classic group", "GROUP_MAX_SIZE_REACHED", setting="group.max.size"),
    Bound("consumer-members", "members of a consumer group", "GROUP_MAX_SIZE_REACHED",
          setting="group.consumer.max.size"),
    Bound("share-members", "members of a share group", "GROUP_MAX_SIZE_REACHED", setting="group.share.max.size"),
    Bound("streams-members", "members of a streams group", "GROUP_MAX_SIZE_REACHED", setting="group.streams.max.size"),
    Bound("topic-sets", "subscriptions whose topics are cached", "the oldest is evicted",
          "ottla.core.groups.topic_sets:SETS_MAX"),
    Bound("regex-program", "size of a compiled regular expression", "INVALID_REGULAR_EXPRESSION",
          "ottla.core.groups.consumer.patterns:PROGRAM_BYTES_MAX"),
    # --- what may be asked for
    Bound("partitions-per-request", "partitions created by one request", "the request is rejected",
          "ottla.core.metadata.topics:PARTITIONS_PER_REQUEST_MAX"),
    Bound("described-partitions", "partitions in a DescribeTopicPartitions response", "a cursor to continue from",
          setting="max.request.partition.size.limit"),
    Bound("offset-metadata", "metadata of a committed offset", "OFFSET_METADATA_TOO_LARGE",
          setting="offset.metadata.max.bytes"),
    Bound("config-value", "length of a setting's value", "INVALID_CONFIG",
          "ottla.core.metadata.configs:VALUE_BYTES_MAX"),
    Bound("topic-name", "length of a topic's name", "INVALID_TOPIC_EXCEPTION",
          "ottla.core.metadata.topic_names:NAME_CHARS_MAX"),
    Bound("message", "size of a batch", "MESSAGE_TOO_LARGE", setting="message.max.bytes"),
    Bound("decompressed", "size of a decompressed batch", "INVALID_RECORD",
          "ottla.wire.compress:DEFAULT_MAX_BYTES"),
    # --- what is kept of the past
    Bound("producers", "time that an idle producer is remembered", "forgotten", setting="producer.id.expiration.ms"),
    Bound("transactions", "time that an idle transactional id is remembered", "forgotten",
          setting="transactional.id.expiration.ms"),
    Bound("quota-sensors", "users and clients whose rates are tracked, for each quota type",
          "the least recently used is evicted",
          "ottla.broker.network.quotas.sensors:SENSORS_MAX"),
    Bound("quota-lookups", "users and clients whose quota is cached", "looked up again",
          "ottla.broker.network.quotas.limits:FOUND_MAX"),
    Bound("telemetry-clients", "clients that push metrics", "the one that was silent longest is forgotten",
          "ottla.broker.telemetry.clients.instances:INSTANCES_MAX"),
    Bound("telemetry-series", "metrics of all of them", "not kept",
          "ottla.broker.telemetry.clients.telemetry:SERIES_MAX"),
    Bound("telemetry-series-of-one", "metrics of one client", "not kept",
          "ottla.broker.telemetry.clients.telemetry:SERIES_OF_CLIENT_MAX"),
    Bound("telemetry-series-text", "length of a metric's name with its labels", "not kept",
          "ottla.broker.telemetry.clients.telemetry:SERIES_CHARS_MAX"),
    Bound("telemetry-push", "size of a decompressed push", "INVALID_RECORD",
          "ottla.broker.telemetry.clients.points:PUSH_BYTES_MAX"),
    Bound("telemetry-bytes", "size of a push", "TELEMETRY_TOO_LARGE", setting="telemetry.max.bytes"),
    Bound("logged-causes", "causes remembered, so that each is logged once", "the cache is cleared",
          "ottla.broker.telemetry.log_deduplication:CAUSES_MAX"),
    Bound("logged-values", "values distinguished in one log message", "one line for all others",
          "ottla.broker.telemetry.log_deduplication:VALUES_MAX"),
)  # fmt: skip
