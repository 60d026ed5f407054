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
    Bound("connections", "connections of a listener", "wait unaccepted in the backlog", setting="max.connections"),
    Bound("connections-per-ip", "connections from one address", "closed at once", setting="max.connections.per.ip"),
    Bound("backlog", "connections not accepted yet", "the kernel's to refuse", setting="socket.listen.backlog.size"),
    Bound("files", "connections of all listeners, by the files that the process may have open", "wait in the backlog",
          "ottla.broker.network.file_limit:FILES_MAX"),
    Bound("accepts", "connections accepted in a turn", "the next turn",
          "ottla.broker.network.listener:ACCEPTS_PER_TURN"),
    Bound("held-connections", "connections that came too fast for their address, held before they are closed",
          "closed at once", "ottla.broker.network.listener:HELD_MAX"),
    Bound("idle", "silence, and answers not taken", "closed", setting="connections.max.idle.ms"),
    Bound("web-connections", "connections to the page of metrics", "closed",
          "ottla.broker.network.web_server:CONNECTIONS_MAX"),
    Bound("viewers", "viewers of the traffic", "told to come again", "ottla.broker.telemetry.traffic:VIEWERS_MAX"),
    Bound("viewer-rate", "frames that a viewer of the traffic is shown in a second", "one exchange in so many is shown",
          "ottla.broker.telemetry.traffic:FRAMES_PER_SECOND_MAX"),
    Bound("viewer-frames", "frames that wait for a viewer of the traffic", "the oldest are dropped",
          "ottla.broker.telemetry.traffic:RING_FRAMES_MAX"),
    Bound("viewer-bytes", "their bytes", "the oldest are dropped", "ottla.broker.telemetry.traffic:RING_BYTES_MAX"),
    Bound("viewer-pending", "requests whose responses viewers of the traffic wait for", "the oldest is not shown",
          "ottla.broker.telemetry.traffic:PENDING_MAX"),
    # --- what comes in
    Bound("frame", "size of a request", "closed", setting="socket.request.max.bytes"),
    Bound("receive", "bytes taken in one read", "the next turn", f"{_CONNECTION}:RECEIVE_BYTES"),
    Bound("queued-frames", "requests behind a parked one", "not read", f"{_CONNECTION}:QUEUED_FRAMES_MAX"),
    Bound("queued-bytes", "their bytes", "not read", f"{_CONNECTION}:QUEUED_BYTES_MAX"),
    Bound("requests-bytes", "large requests under way, all together", "not read until there is room",
          "ottla.broker.network.memory_pool:DEFAULT_BYTES", "queued.max.request.bytes"),
    Bound("requests-time", "time that an unfinished request may hold that room when others want it", "closed",
          "ottla.broker.network.memory_pool:HELD_MAX_MS"),
    Bound("client-ids", "client ids remembered", "read anew each time", "ottla.broker.network.dispatch:CLIENT_IDS_MAX"),
    Bound("client-id-bytes", "their length", "read anew each time",
          "ottla.broker.network.dispatch:CLIENT_ID_BYTES_MAX"),
    # --- what goes out
    Bound("outgoing", "answers that a peer does not take", "no further request is worked on",
          f"{_CONNECTION}:OUTGOING_MAX_BYTES"),
    Bound("fetch", "bytes of an answer to Fetch", "left for the next one", setting="fetch.max.bytes"),
    Bound("open-files", "files held open", "the longest unused is closed", "ottla.log.files:DEFAULT_OPEN_FILES_MAX"),
    # --- what waits and what is kept for clients
    Bound("waiting", "parked requests", "answered at once as if their time were over",
          "ottla.broker.loop.delayed_operations:DELAYED_MAX"),
    Bound("encoded-topics", "versions and listeners whose topics are remembered as bytes", "all are forgotten",
          "ottla.broker.controller.encoded_topics:FORMS_MAX"),
    Bound("deleted-topics", "time that the name of a deleted topic is remembered", "forgotten",
          "ottla.broker.controller.deleted_topics:REMEMBERED_MS"),
    Bound("fetch-sessions", "fetch sessions", "the stalest goes, or no session is given",
          setting="max.incremental.fetch.session.cache.slots"),
    Bound("fetch-session-partitions", "partitions in all of them", "no session is given",
          "ottla.broker.replicas.fetch_sessions:SESSION_PARTITIONS_MAX"),
    Bound("share-sessions", "share sessions", "SHARE_SESSION_LIMIT_REACHED", setting="group.share.max.share.sessions"),
    Bound("share-settings", "groups whose settings are remembered", "all are forgotten",
          "ottla.broker.share.leader:SETTINGS_MAX"),
    Bound("share-counts", "share groups counted by name", "counted together", "ottla.broker.share.counts:GROUPS_MAX"),
    Bound("pending-members", "classic members without a first join, in a group", "refused",
          "ottla.core.groups.classic.group:PENDING_MEMBERS_MAX"),
    Bound("classic-members", "members of a classic group", "GROUP_MAX_SIZE_REACHED", setting="group.max.size"),
    Bound("consumer-members", "members of a consumer group", "GROUP_MAX_SIZE_REACHED",
          setting="group.consumer.max.size"),
    Bound("share-members", "members of a share group", "GROUP_MAX_SIZE_REACHED", setting="group.share.max.size"),
    Bound("streams-members", "members of a streams group", "GROUP_MAX_SIZE_REACHED", setting="group.streams.max.size"),
    Bound("topic-sets", "subscriptions whose topics are remembered", "the oldest goes",
          "ottla.core.groups.topic_sets:SETS_MAX"),
    Bound("regex-program", "size of a compiled regular expression", "INVALID_REGULAR_EXPRESSION",
          "ottla.core.groups.consumer.patterns:PROGRAM_BYTES_MAX"),
    # --- what may be asked for
    Bound("partitions-per-request", "partitions made by one request", "refused as a whole",
          "ottla.core.metadata.topics:PARTITIONS_PER_REQUEST_MAX"),
    Bound("described-partitions", "partitions in an answer to DescribeTopicPartitions", "a cursor to go on from",
          setting="max.request.partition.size.limit"),
    Bound("offset-metadata", "text beside a committed offset", "OFFSET_METADATA_TOO_LARGE",
          setting="offset.metadata.max.bytes"),
    Bound("config-value", "length of a setting's value", "INVALID_CONFIG",
          "ottla.core.metadata.configs:VALUE_BYTES_MAX"),
    Bound("topic-name", "length of a topic's name", "INVALID_TOPIC_EXCEPTION",
          "ottla.core.metadata.topic_names:NAME_CHARS_MAX"),
    Bound("message", "size of a batch", "MESSAGE_TOO_LARGE", setting="message.max.bytes"),
    Bound("decompressed", "size of a batch once it is unpacked", "INVALID_RECORD",
          "ottla.wire.compress:DEFAULT_MAX_BYTES"),
    # --- what is kept of the past
    Bound("producers", "time that an idle producer is remembered", "forgotten", setting="producer.id.expiration.ms"),
    Bound("transactions", "time that an idle transactional id is remembered", "forgotten",
          setting="transactional.id.expiration.ms"),
    Bound("quota-sensors", "rates of users and clients, of each kind", "the longest unused goes",
          "ottla.broker.network.quotas.sensors:SENSORS_MAX"),
    Bound("quota-lookups", "users and clients whose limit is remembered", "looked up anew",
          "ottla.broker.network.quotas.limits:FOUND_MAX"),
    Bound("telemetry-clients", "clients that push metrics", "the longest silent is forgotten",
          "ottla.broker.telemetry.clients.instances:INSTANCES_MAX"),
    Bound("telemetry-series", "metrics of all of them", "not kept",
          "ottla.broker.telemetry.clients.telemetry:SERIES_MAX"),
    Bound("telemetry-series-of-one", "metrics of one client", "not kept",
          "ottla.broker.telemetry.clients.telemetry:SERIES_OF_CLIENT_MAX"),
    Bound("telemetry-push", "size of a push once it is unpacked", "INVALID_RECORD",
          "ottla.broker.telemetry.clients.points:PUSH_BYTES_MAX"),
    Bound("telemetry-bytes", "size of a push as it comes", "TELEMETRY_TOO_LARGE", setting="telemetry.max.bytes"),
    Bound("logged-causes", "causes remembered so that each is logged once", "all are forgotten",
          "ottla.broker.telemetry.log_deduplication:CAUSES_MAX"),
    Bound("logged-values", "values told apart in one text of the log", "one line for all others",
          "ottla.broker.telemetry.log_deduplication:VALUES_MAX"),
)  # fmt: skip
