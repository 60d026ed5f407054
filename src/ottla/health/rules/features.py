"""Features that are supported and not enabled."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from ottla.health.facts import Cluster
from ottla.health.finding import NextStep, Severity, Subject, Tier
from ottla.health.phrases import href
from ottla.health.rule import Match, RuleContext, rule

HOUR_MS: Final = 3_600_000
DEFAULT_FROM: Final[dict[str, tuple[tuple[int, int], ...]]] = {
    "group.version": ((22, 1),),
    "transaction.version": ((24, 2),),
    "share.version": ((28, 1),),
    "streams.version": ((29, 1),),
}
"""Feature -> (metadata.version, default level of new clusters of that version), newest first."""

STAYS_OFF: Final = {
    "group.version": "the consumer group protocol is disabled",
    "transaction.version": "stricter transaction checks are disabled",
    "share.version": "share groups are disabled",
    "streams.version": "streams groups are disabled",
    "kraft.version": "voters cannot be added or removed",
    "eligible.leader.replicas.version": "eligible leader replicas are not tracked",
    "metadata.version": "features of newer versions are disabled",
}


class Shortfall(NamedTuple):
    """A feature whose level is lower than it could be."""

    name: str
    level: int
    better: int
    is_below_default: bool
    """Whether new clusters of this metadata.version start with the better level."""

    @property
    def stays_off(self) -> str:
        return STAYS_OFF.get(self.name, "its features are disabled")


@rule(
    "features-not-finalised", Severity.NOTICE, Tier.ADMIN, on=["cluster"], scope=[], needs=["cluster.features"],
    condition="every node has supported a level above the finalized one for 24 h, or group, transaction, share or "
    "streams.version is below the level that new clusters of this metadata.version start with",
    why="Features that all nodes support are disabled.",
    limits={"hold_h": 24},
)  # fmt: skip
def features_not_finalised(ctx: RuleContext) -> Iterator[Match]:
    fact = ctx.history.cluster.fact
    for short in shortfalls(fact) if fact else ():
        yield _match(short, 0 if short.is_below_default else ctx.limits["hold_h"] * HOUR_MS)


def shortfalls(fact: Cluster) -> Iterator[Shortfall]:
    """The features that could be at a higher level."""
    if fact.finalized is None:
        return
    supported = _supported_by_all(fact)
    for name in sorted({*supported, *DEFAULT_FROM}):
        level = fact.finalized.get(name, 0)
        usual = default_level(name, fact.finalized.get("metadata.version", 0))
        best = supported.get(name, usual)
        if level < usual <= best:
            yield Shortfall(name, level, usual, is_below_default=True)
        elif level < best:
            yield Shortfall(name, level, best, is_below_default=False)


def _match(short: Shortfall, hold_ms: float) -> Match:
    name, level, better, _ = short
    return Match(
        subject=Subject("feature", name), hold_ms=hold_ms,
        sentence=f"{name} is {level}, but all nodes support {better}: {short.stays_off}",
        past=f"{name} was {level}, but all nodes supported {better}",
        evidence={"finalized": level, "supported": better},
        next=[NextStep(f"upgrade {name} once you will not roll back to older software",
                   f"ottla quorum features upgrade {name}={better}", href("features"))],
    )  # fmt: skip


def default_level(name: str, metadata_version: int) -> int:
    """The level of a feature in new clusters of a metadata.version."""
    return next((level for since, level in DEFAULT_FROM.get(name, ()) if metadata_version >= since), 0)


def _supported_by_all(fact: Cluster) -> dict[str, int]:
    """Feature -> the highest level that all nodes support; empty if a node does not report its levels."""
    tables = [broker.supported for broker in fact.brokers]
    if not tables or any(table is None for table in tables):
        return {}
    names = {name for table in tables if table for name in table}
    return {name: min((table or {}).get(name, (0, 0))[1] for table in tables) for name in names}
