"""What the story is made of: names, sizes, moments. Everything is worked out from the seed and the speed."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Final

__all__ = ["AUDIT", "BILLING", "LINES", "ORDERS", "PAYMENTS", "RISK_CHECKS", "TOPICS", "WORD_TOTALS", "Plan"]

ORDERS: Final = "orders"
PAYMENTS: Final = "payments"
LINES: Final = "lines"
TOPICS: Final = {ORDERS: 6, PAYMENTS: 3, LINES: 4}
"""Topic -> partitions."""
RATES: Final = {ORDERS: 90, PAYMENTS: 66, LINES: 44}
"""Topic -> records in a second, 200 together."""

BILLING: Final = "billing"
RISK_CHECKS: Final = "risk-checks"
WORD_TOTALS: Final = "word-totals"
AUDIT: Final = "audit"

BILLING_MEMBERS: Final = ("billing-1", "billing-2", "billing-3")
VICTIM: Final = "billing-2"
RISK_WORKERS: Final = 4
DELIVERY_LIMIT: Final = 5
ACCEPTED_AT: Final = 3
"""In the storm a record is accepted at this delivery whatever happens, so that only poison reaches the limit."""
RELEASED_SHARE: Final = 0.9
POISON_AT_S: Final = (18, 40, 62, 86)
"""After so many seconds of writing comes the next poison record of each partition of payments."""

_SESSION_S: Final = 6.0
_LOCK_S: Final = 5.0
_HEARTBEAT_S: Final = 1.0
_SESSION_MIN_S: Final = 3.0
_LOCK_MIN_S: Final = 2.0
_HEARTBEAT_MIN_S: Final = 0.25


@dataclass(frozen=True, slots=True)
class Plan:
    """Moments are seconds after the workloads began; a speed of 10 makes ten of them one."""

    seed: int = 1
    speed: float = 1.0

    def s(self, story_s: float) -> float:
        """So many seconds of the story, in real ones."""
        return story_s / self.speed

    @property
    def second_app_s(self) -> float:
        return self.s(35)

    @property
    def kill_member_s(self) -> float:
        return self.s(52)

    @property
    def kill_broker_s(self) -> float:
        return self.s(72)

    @property
    def down_s(self) -> float:
        return self.s(15)

    @property
    def storm_s(self) -> float:
        return self.s(108)

    @property
    def storm_length_s(self) -> float:
        return self.s(30)

    @property
    def end_s(self) -> float:
        """When the producers stop. What is over counts as resolved half a minute after it was last seen, and a storm is
        seen in spans of ten seconds, some time after they are over: it takes a minute of calm."""
        return self.s(204)

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
        """How often the observer looks at what the story is about; at the rest as often as it always does."""
        return {"group": self.s(1), "lag": self.s(1), "cluster": self.s(1), "share_offsets": self.s(2)}

    @property
    def broker_settings(self) -> dict[str, str]:
        """What the broker is told by --set, beyond its defaults."""
        told = {"group.min.session.timeout.ms": self.session_ms, "group.initial.rebalance.delay.ms": 0}
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
        return ONE_NODE | {name: str(value) for name, value in told.items()}

    def poison(self) -> dict[int, tuple[int, ...]]:
        """For each partition of payments, which of its records, counted from 0, nobody will be able to process."""
        random = Random(f"poison {self.seed}")
        rate = RATES[PAYMENTS] / TOPICS[PAYMENTS]
        return {
            partition: tuple(round(rate * self.s(moment_s)) + random.randrange(10) for moment_s in POISON_AT_S)
            for partition in range(TOPICS[PAYMENTS])
        }


ONE_NODE: Final = {
    "auto.create.topics.enable": "false",
    "default.replication.factor": "1",
    "offsets.topic.num.partitions": "3",
    "offsets.topic.replication.factor": "1",
    "share.coordinator.state.topic.num.partitions": "3",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "transaction.state.log.num.partitions": "3",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}
"""Internal topics of a size that fits one node."""


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
