"""Options of the format `ottla` as a sink: those of Spark's own Kafka sink, and those of exactly-once writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ottla.client.settings import Changes
from ottla.spark.cluster_options import KNOWN, ClusterOptions
from ottla.spark.options import bad_option, boolean, one_of, option, positive, text
from ottla.wire.batch import Compression

__all__ = ["SinkOptions"]

BATCH_BYTES: Final = 256 * 1024
DELIVERY_TIMEOUT_MS: Final = 120_000
TRANSACTION_TIMEOUT_MS: Final = 900_000
"""The default of the brokers' maximum."""
PRODUCER_SETTINGS: Final = frozenset({"acks", "batch.size", "compression.type", "delivery.timeout.ms", "linger.ms"})


@dataclass(frozen=True, repr=False)
class SinkOptions(ClusterOptions):
    topic: str = option("topic", text, "")
    include_headers: bool = option("includeHeaders", boolean, False)
    exactly_once: bool = option("exactlyOnce", boolean, False)
    write_id: str = option("writeId", text, "")
    transactional_id_prefix: str = option("transactionalIdPrefix", text, "ottla")
    marker_topic: str = option("markerTopic", text, "ottla.sink.markers")
    transaction_timeout_ms: int = option("transactionTimeoutMs", positive, TRANSACTION_TIMEOUT_MS)
    on_ahead: str = option("exactlyOnce.onAhead", one_of("fail", "skip"), "fail")
    on_missing_marker: str = option("onMissingMarker", one_of("fail", "warn"), "fail")
    allow_speculation: bool = option("allowSpeculation", boolean, False)
    sink_tag: str = option("sinkTag", text, "0")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.exactly_once and self.kafka.get("acks", "all") not in ("all", "-1"):
            raise bad_option("kafka.acks", "exactlyOnce needs all")
        if self.write_id and not self.exactly_once:
            raise bad_option("writeId", "it needs exactlyOnce=true")
        self.producer_settings()

    def _known_settings(self) -> frozenset[str]:
        return KNOWN | PRODUCER_SETTINGS

    def for_batch(self) -> SinkOptions:
        if self.exactly_once and not self.write_id:
            raise bad_option("exactlyOnce", "a batch query needs writeId, to detect repeated writes")
        return self

    def for_stream(self) -> SinkOptions:
        if self.write_id:
            raise bad_option("writeId", "it is for batch queries; a stream is identified by its checkpoint")
        return self

    def client_settings(self) -> Changes:
        """As with every producer, the broker may create missing topics."""
        return {"allow_auto_create_topics": True, **super().client_settings()}

    # --- what the values mean -----------------------------------------------------------------------------------------

    def producer_settings(self) -> dict[str, object]:
        """Arguments of a `Producer`."""
        acks = self.kafka.get("acks", "all")
        if acks not in ("all", "-1", "1", "0"):
            raise bad_option("kafka.acks", f"{acks!r} is not one of all, -1, 1, 0")
        codec = self.kafka.get("compression.type", "none").upper()
        if codec not in Compression.__members__:
            known = ", ".join(each.name.lower() for each in Compression)
            raise bad_option("kafka.compression.type", f"{codec.lower()!r} is not one of {known}")
        return {
            "acks": "all" if acks == "all" else int(acks),
            "compression": Compression[codec],
            "batch_bytes": self.number("batch.size") or BATCH_BYTES,
            "delivery_timeout_ms": self.number("delivery.timeout.ms") or DELIVERY_TIMEOUT_MS,
        }
