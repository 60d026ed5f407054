"""The plan of the demo: names, sizes and times, all computed from the seed and the speed."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Final

__all__ = ["AUDIT", "BILLING", "LINES", "NODES", "ORDERS", "PAYMENTS", "RISK_CHECKS", "TOPICS", "WORD_TOTALS", "Plan"]

NODES: Final = 3
ORDERS: Final = "orders"
PAYMENTS: Final = "payments"
LINES: Final = "lines"
TOPICS: Final = {ORDERS: 6, PAYMENTS: 3, LINES: 4}
"""Topic -> partitions."""
RATES: Final = {ORDERS: 90, PAYMENTS: 66, LINES: 44}
"""Topic -> records per second, 200 in total."""

BILLING: Final = "billing"
RISK_CHECKS: Final = "risk-checks"
WORD_TOTALS: Final = "word-totals"
AUDIT: Final = "audit"

BILLING_MEMBERS: Final = ("billing-1", "billing-2", "billing-3")
VICTIM: Final = "billing-2"
RISK_WORKERS: Final = 4
DELIVERY_LIMIT: Final = 5
ACCEPTED_AT: Final = 3
"""In the storm a record is always accepted at this delivery, so that only poison reaches the limit."""
RELEASED_SHARE: Final = 0.9
POISON_AT_S: Final = (18, 40, 62, 86)
"""The times of the poison records in each partition of payments, in seconds after writing began."""

_SESSION_S: Final = 6.0
_NODE_SESSION_S: Final = 9.0
_LOCK_S: Final = 5.0
_HEARTBEAT_S: Final = 1.0
_SESSION_MIN_S: Final = 3.0
_LOCK_MIN_S: Final = 2.0
_HEARTBEAT_MIN_S: Final = 0.25


@dataclass(frozen=True, slots=True)
class Plan:
    """Times are seconds after the workloads began; with a speed of 10, ten of them take one second."""

    seed: int = 1
    speed: float = 1.0

    def s(self, story_s: float) -> float:
        """Seconds of the plan, in real seconds."""
        return story_s / self.speed

    @property
    def second_app_s(self) -> float:
        return self.s(20)

    @property
    def kill_member_s(self) -> float:
        return self.s(40)

    @property
    def kill_node_s(self) -> float:
        return self.s(55)

    @property
    def down_s(self) -> float:
        """Longer than half a minute: so long partitions may lack a replica before that is a finding."""
        return self.s(45)

    @property
    def storm_s(self) -> float:
        return self.s(115)

    @property
    def storm_length_s(self) -> float:
        return self.s(30)

    @property
    def end_s(self) -> float:
        """When the producers stop. A finding is resolved half a minute after its condition was last true, and a storm
        is detected in windows of ten seconds, some time after they end: so there is a minute of calm."""
        return self.s(210)

    @property
    def session_ms(self) -> int:
        return _ms(max(_SESSION_MIN_S, self.s(_SESSION_S)))

    @property
    def lock_ms(self) -> int:
        return _ms(max(_LOCK_MIN_S, self.s(_LOCK_S)))

    @property
    def heartbeat_ms(self) -> int:
        return _ms(max(_HEARTBEAT_MIN_S, self.s(_HEARTBEAT_S)))

    @property
    def intervals_s(self) -> dict[str, float]:
        """The intervals of the kinds of samples that matter here; the others have their defaults."""
        return {"group": self.s(1), "lag": self.s(1), "cluster": self.s(1), "share_offsets": self.s(2)}

    @property
    def broker_settings(self) -> dict[str, str]:
        """What the nodes are set to, beside their addresses."""
        told = {
            "broker.session.timeout.ms": _ms(max(_SESSION_MIN_S, self.s(_NODE_SESSION_S))),
            "broker.heartbeat.interval.ms": self.heartbeat_ms,
            "group.min.session.timeout.ms": self.session_ms,
            "group.initial.rebalance.delay.ms": 0,
        }
        for kind in ("consumer", "share", "streams"):
            told |= {
                f"group.{kind}.session.timeout.ms": self.session_ms,
                f"group.{kind}.min.session.timeout.ms": self.session_ms,
                f"group.{kind}.heartbeat.interval.ms": self.heartbeat_ms,
                f"group.{kind}.min.heartbeat.interval.ms": self.heartbeat_ms,
            }
        told |= {
            "group.streams.initial.rebalance.delay.ms": 0,
            "group.share.record.lock.duration.ms": self.lock_ms,
            "group.share.min.record.lock.duration.ms": self.lock_ms,
            "group.share.delivery.count.limit": DELIVERY_LIMIT,
        }
        return _REPLICATED | _SMALL | {name: str(value) for name, value in told.items()}

    def poison(self) -> dict[int, tuple[int, ...]]:
        """Partition of payments -> the numbers of its poison records, counted from 0."""
        random = Random(f"poison {self.seed}")
        rate = RATES[PAYMENTS] / TOPICS[PAYMENTS]
        return {
            partition: tuple(round(rate * self.s(moment_s)) + random.randrange(10) for moment_s in POISON_AT_S)
            for partition in range(TOPICS[PAYMENTS])
        }


_REPLICATED: Final = {
    "default.replication.factor": str(NODES),
    "min.insync.replicas": str(NODES - 1),
    "offsets.topic.replication.factor": str(NODES),
    "share.coordinator.state.topic.min.isr": str(NODES - 1),
    "share.coordinator.state.topic.replication.factor": str(NODES),
    "transaction.state.log.min.isr": str(NODES - 1),
    "transaction.state.log.replication.factor": str(NODES),
}
_SMALL: Final = {
    "auto.create.topics.enable": "false",
    "offsets.topic.num.partitions": "3",
    "share.coordinator.state.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
}
"""Small internal topics."""


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
