"""Features of a cluster: which there are, at which levels, what depends on what, and what metadata.version changes.

A feature is finalized at one level for the whole cluster; 0 means that it is off. metadata.version decides which
records, and which of their versions, may be written to the log. kraft.version is kept by the quorum in control
records and never as a FeatureLevelRecord. The facts are those of Apache Kafka 4.3.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final, NamedTuple

METADATA_VERSION: Final = "metadata.version"
KRAFT_VERSION: Final = "kraft.version"
TRANSACTION_VERSION: Final = "transaction.version"
GROUP_VERSION: Final = "group.version"
ELR_VERSION: Final = "eligible.leader.replicas.version"
SHARE_VERSION: Final = "share.version"
STREAMS_VERSION: Final = "streams.version"

OTTLA_VERSION: Final = "ottla.version"
"""Which brokers of ottla name in their registration, and never finalized: from level 1 on they serve what Kafka 4.4 has
beyond 4.3 for streams groups (StreamsGroupHeartbeat 1, topology descriptions, the assignor highly_available). Apache
Kafka's controllers take what they do not know for a feature that is off."""
OTTLA_VERSIONS: Final = (0, 1)

Levels = Mapping[str, int]


class FeatureError(ValueError):
    """Levels that cannot be had, with the reason."""


class Step(NamedTuple):
    """One metadata.version: its name, and whether the log's records changed with it."""

    name: str
    changes_records: bool


METADATA_VERSIONS: Final[dict[int, Step]] = {
    7: Step("3.3-IV3", changes_records=True),
    8: Step("3.4-IV0", changes_records=True),
    9: Step("3.5-IV0", changes_records=False),
    10: Step("3.5-IV1", changes_records=False),
    11: Step("3.5-IV2", changes_records=True),
    12: Step("3.6-IV0", changes_records=False),
    13: Step("3.6-IV1", changes_records=True),
    14: Step("3.6-IV2", changes_records=True),
    15: Step("3.7-IV0", changes_records=True),
    16: Step("3.7-IV1", changes_records=False),
    17: Step("3.7-IV2", changes_records=True),
    18: Step("3.7-IV3", changes_records=False),
    19: Step("3.7-IV4", changes_records=False),
    20: Step("3.8-IV0", changes_records=False),
    21: Step("3.9-IV0", changes_records=False),
    22: Step("4.0-IV0", changes_records=False),
    23: Step("4.0-IV1", changes_records=True),
    24: Step("4.0-IV2", changes_records=False),
    25: Step("4.0-IV3", changes_records=False),
    26: Step("4.1-IV0", changes_records=False),
    27: Step("4.1-IV1", changes_records=False),
    28: Step("4.2-IV0", changes_records=False),
    29: Step("4.2-IV1", changes_records=False),
    30: Step("4.3-IV0", changes_records=True),
}
METADATA_VERSION_MIN: Final = min(METADATA_VERSIONS)
METADATA_VERSION_MAX: Final = max(METADATA_VERSIONS)


class Since(NamedTuple):
    """A level of a feature: the metadata.version from which new clusters start with it, and the one it needs."""

    default_from: int
    needs_metadata_version: int = METADATA_VERSION_MIN


FEATURES: Final[dict[str, dict[int, Since]]] = {
    KRAFT_VERSION: {1: Since(21)},
    TRANSACTION_VERSION: {1: Since(24), 2: Since(24)},
    GROUP_VERSION: {1: Since(22)},
    ELR_VERSION: {1: Since(26, needs_metadata_version=23)},
    SHARE_VERSION: {1: Since(28)},
    STREAMS_VERSION: {1: Since(29)},
}
"""Feature -> its levels above 0."""

DEAD_LETTERS_FROM: Final = 2
"""Level of share.version from which share groups can have dead-letter queues (KIP-1191)."""

UNSTABLE: Final[dict[str, dict[int, Since]]] = {SHARE_VERSION: {DEAD_LETTERS_FROM: Since(METADATA_VERSION_MAX + 1)}}
"""Levels that Apache Kafka 4.3.1 does not know: its nodes refuse a directory that has one. No cluster starts with them,
and they can be finalized with unstable.feature.versions.enable only."""

SUPPORTED: Final[dict[str, tuple[int, int]]] = {
    METADATA_VERSION: (METADATA_VERSION_MIN, METADATA_VERSION_MAX),
    **{name: (0, max(levels)) for name, levels in FEATURES.items()},
}
"""Feature -> the levels that this software can run with, both included."""

# metadata.version from which something may be written.
SCRAM_FROM: Final = 11
NO_EPOCH_BUMP_ON_ISR_SHRINK_FROM: Final = 12
TRANSACTIONS_FROM: Final = 13
DELEGATION_TOKENS_FROM: Final = 14
CONTROLLER_REGISTRATION_FROM: Final = 15
DIRECTORIES_FROM: Final = 17
ELR_FROM: Final = 23
CORDONED_DIRS_FROM: Final = 30

_RECORD_VERSIONS: Final[dict[str, tuple[tuple[int, int], ...]]] = {
    "RegisterBrokerRecord": ((CORDONED_DIRS_FROM, 4), (DIRECTORIES_FROM, 3), (8, 2), (METADATA_VERSION_MIN, 1)),
    "PartitionRecord": ((ELR_FROM, 2), (DIRECTORIES_FROM, 1), (METADATA_VERSION_MIN, 0)),
    "PartitionChangeRecord": ((ELR_FROM, 2), (DIRECTORIES_FROM, 1), (METADATA_VERSION_MIN, 0)),
}
"""Record -> (metadata.version from which, version written), newest first."""


@cache
def record_version(record_name: str, metadata_version: int) -> int:
    """The version in which a record is written."""
    versions = _RECORD_VERSIONS[record_name]
    return next((version for since, version in versions if metadata_version >= since), versions[-1][1])


def supported(*, is_unstable: bool) -> dict[str, tuple[int, int]]:
    """Like SUPPORTED, with the levels that must be asked for, if they are."""
    if not is_unstable:
        return SUPPORTED
    return {name: (low, max((high, *UNSTABLE.get(name, ())))) for name, (low, high) in SUPPORTED.items()}


def is_known(name: str, level: int) -> bool:
    """Whether this software knows what a level means."""
    low, high = supported(is_unstable=True).get(name, (0, 0))
    return low <= level <= high


def elr_enabled(levels: Levels) -> bool:
    return levels.get(ELR_VERSION, 0) >= 1


def default_level(name: str, metadata_version: int) -> int:
    """The level with which a new cluster of that metadata.version starts."""
    return max((level for level, since in FEATURES[name].items() if metadata_version >= since.default_from), default=0)


def check_dependencies(name: str, level: int, levels: Levels) -> None:
    """FeatureError if a feature cannot be at `level` while the others are at `levels`."""
    if level == 0 or name == METADATA_VERSION:
        return
    needed = (FEATURES[name] | UNSTABLE.get(name, {}))[level].needs_metadata_version
    if levels.get(METADATA_VERSION, 0) < needed:
        raise FeatureError(
            f"{name}={level} needs {METADATA_VERSION} {needed} ({METADATA_VERSIONS[needed].name}) or later"
        )


def metadata_version_of(text: str) -> int:
    """The level that "4.3", "4.3.1", "4.3-IV0" or "30" names. FeatureError if none."""
    if text.isdecimal() and int(text) in METADATA_VERSIONS:
        return int(text)
    release = ".".join(text.split(".")[:2]) if "-" not in text else text
    matching = [
        level for level, step in METADATA_VERSIONS.items() if release in (step.name, step.name.partition("-")[0])
    ]
    if not matching:
        known = ", ".join(step.name for step in METADATA_VERSIONS.values())
        raise FeatureError(f"{text!r} is no {METADATA_VERSION} that ottla knows; those are {known}")
    return max(matching)


def levels_for_format(
    requested: Levels | None = None,
    *,
    metadata_version: int | None = None,
    is_dynamic_quorum: bool = True,
    is_unstable: bool = False,
) -> dict[str, int]:
    """The levels of a new cluster: what was asked for, the defaults of its metadata.version for the rest.

    `metadata_version` comes from a release, and then must not be asked for by its own name. A quorum whose voters are
    kept in the log, as a standalone node has, needs kraft.version 1; one with configured voters has 0. `is_unstable` is
    what unstable.feature.versions.enable says.
    """
    requested = dict(requested or {})
    if metadata_version is not None and METADATA_VERSION in requested:
        raise FeatureError(f"{METADATA_VERSION} is given twice: as a feature and as the release")
    levels = {METADATA_VERSION: requested.get(METADATA_VERSION, metadata_version or METADATA_VERSION_MAX)}
    for name, level in requested.items():
        _check_level(name, level, is_unstable=is_unstable)
    for name in FEATURES:
        levels[name] = requested.get(name, default_level(name, levels[METADATA_VERSION]))
    levels[KRAFT_VERSION] = _kraft_level(requested.get(KRAFT_VERSION), is_dynamic_quorum=is_dynamic_quorum)
    for name, level in levels.items():
        _check_level(name, level, is_unstable=is_unstable)
        check_dependencies(name, level, levels)
    return levels


def _check_level(name: str, level: int, *, is_unstable: bool) -> None:
    if name not in SUPPORTED:
        from difflib import get_close_matches

        near = get_close_matches(name, SUPPORTED, n=1, cutoff=0.0)[0]
        raise FeatureError(f"there is no feature {name!r}; the nearest is {near}")
    low, high = supported(is_unstable=is_unstable)[name]
    if not low <= level <= high:
        hint = "; it needs unstable.feature.versions.enable=true" if is_known(name, level) else ""
        raise FeatureError(f"{name} has the levels {low} to {high}, not {level}{hint}")


def _kraft_level(requested: int | None, *, is_dynamic_quorum: bool) -> int:
    level = int(is_dynamic_quorum)
    if requested is not None and requested != level:
        voters = "kept in the log" if is_dynamic_quorum else "named by controller.quorum.voters"
        raise FeatureError(f"{KRAFT_VERSION} must be {level}, since the quorum's voters are {voters}")
    return level
