"""What lies in a metadata log, batch by batch, in words that tests can compare."""

from __future__ import annotations

from pathlib import Path

from ottla.core.metadata.records import read_batch
from ottla.wire.batch import BatchView, read_control_batch, split_batches

LOG = "__cluster_metadata-0/00000000000000000000.log"


def metadata_batches(directory: Path, start: int = 0) -> list[list[str]]:
    """The records of each batch from an offset on: type and what tells them apart."""
    found = []
    for batch in split_batches((directory / LOG).read_bytes()):
        assert isinstance(batch, BatchView)
        if batch.base_offset < start:
            continue
        messages = [each.message for each in (read_control_batch(batch) if batch.is_control else read_batch(batch))]
        found.append([_shown(message) for message in messages])
    return found


def log_end(directory: Path) -> int:
    return max(batch.last_offset for batch in split_batches((directory / LOG).read_bytes())) + 1


def _shown(message: object) -> str:
    name = type(message).__name__.removesuffix("Record").removesuffix("Message")
    fields = {
        "FeatureLevel": ("name", "feature_level"),
        "Config": ("resource_type", "resource_name", "name", "value"),
        "BeginTransaction": ("name",),
        "BrokerRegistrationChange": ("fenced", "in_controlled_shutdown", "cordoned_log_dirs"),
        "RegisterBroker": ("broker_epoch", "fenced"),
        "PartitionChange": ("partition_id", "isr", "leader", "eligible_leader_replicas", "last_known_elr"),
        "Topic": ("name",),
        "Partition": ("partition_id", "leader", "leader_epoch"),
        "ProducerIds": ("next_producer_id",),
    }.get(name, ())
    return " ".join([name, *(f"{field}={getattr(message, field)}" for field in fields)])
