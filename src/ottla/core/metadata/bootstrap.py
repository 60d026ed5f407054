"""The first records of a new cluster, and what a controller writes when it becomes active."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ottla.core.metadata import features
from ottla.core.metadata.context import ControllerState, Result
from ottla.core.metadata.fault import MetadataFault
from ottla.core.metadata.image import BROKER, CLUSTER_DEFAULT
from ottla.wire.keyed import Versioned
from ottla.wire.types.cluster_metadata import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
)

TRANSACTION_NAME: Final = "Bootstrap records"
ABORT_REASON: Final = "Controller failover"


def bootstrap_records(levels: features.Levels) -> list[Versioned]:
    """The features of a new cluster: metadata.version first, then those that are on, by name."""
    others = sorted(levels.keys() - {features.METADATA_VERSION, features.KRAFT_VERSION})
    named = [features.METADATA_VERSION, *(name for name in others if levels[name] > 0)]
    return [Versioned(FeatureLevelRecord(name, levels[name]), 0) for name in named]


def finalized_levels(records: Sequence[Versioned]) -> dict[str, int]:
    """The feature levels that records set; MetadataFault if metadata.version is not among them."""
    levels = {each.message.name: each.message.feature_level for each in records if _is_feature(each)}
    if features.METADATA_VERSION not in levels:
        raise MetadataFault(f"the bootstrap records do not say which {features.METADATA_VERSION} the cluster has")
    return levels


def activation(state: ControllerState, bootstrap: Sequence[Versioned]) -> Result:
    """What a new active controller writes first: the bootstrap records if the log has none, else nothing.

    A transaction that its predecessor left open is aborted. `bootstrap` comes from bootstrap.checkpoint, or is
    `bootstrap_records` of the defaults where there is no such file.
    """
    image = state.image
    abort = [Versioned(AbortTransactionRecord(ABORT_REASON), 0)] if image.in_transaction else []
    if image.metadata_version:
        return Result(tuple(abort), None)
    levels = finalized_levels(bootstrap)
    records = [*bootstrap, *_min_isr_record(state, levels)]
    if levels[features.METADATA_VERSION] < features.TRANSACTIONS_FROM:
        return Result(tuple(records), None)
    begin = Versioned(BeginTransactionRecord(TRANSACTION_NAME), 0)
    return Result((*abort, begin, *records, Versioned(EndTransactionRecord(), 0)), None, is_atomic=False)


def _min_isr_record(state: ControllerState, levels: features.Levels) -> list[Versioned]:
    """With ELR the minimum ISR must be the same everywhere, so the node's own setting becomes the cluster's."""
    if not features.elr_enabled(levels):
        return []
    value = str(state.settings.min_insync_replicas)
    return [Versioned(ConfigRecord(BROKER, CLUSTER_DEFAULT, "min.insync.replicas", value), 0)]


def _is_feature(record: Versioned) -> bool:
    return isinstance(record.message, FeatureLevelRecord)
