"""What comes with a request, and what a handler gives back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from ottla.core.metadata.features import SUPPORTED
from ottla.wire.access import ANONYMOUS, Operation, ResourceType
from ottla.wire.keyed import Versioned
from ottla.wire.reject import Reject

if TYPE_CHECKING:
    from ottla.core.metadata.delegation_tokens import TokenSecrets
    from ottla.core.metadata.image import MetadataImage
    from ottla.core.metadata.sessions import BrokerSessions

Authorize = Callable[[Operation, ResourceType, str], bool]


def allow_all(operation: Operation, resource_type: ResourceType, name: str) -> bool:
    return True


def unlimited(partition_count: int) -> bool:
    return True


class Context(msgspec.Struct, frozen=True):
    """The circumstances of one request.

    `now_ms` is on the clock of timers, the same as in `Controller.activate` and `tick`: no record tells it. `wall_ms`
    is the time of the calendar. `principal` is who asks.
    `log_end_offset` is the offset that the first record of the answer will get. `new_uuid` draws 16 random bytes.
    `authorize` says whether the principal may do something; `charge` takes the partitions that are created or deleted
    from his quota and says whether there was enough left.
    """

    now_ms: int
    log_end_offset: int
    new_uuid: Callable[[], bytes]
    api_version: int
    kraft_version: int = 1
    wall_ms: int = 0
    principal: str = ANONYMOUS
    authorize: Authorize = allow_all
    charge: Callable[[int], bool] = unlimited


class KRaftUpgrade(msgspec.Struct, frozen=True):
    """A level of kraft.version that the quorum is to reach; with `validate_only` it is only asked whether it could."""

    level: int
    validate_only: bool


class Result(msgspec.Struct, frozen=True):
    """Records to append, and the reply to give when they are committed.

    An atomic result takes effect as a whole or not at all; another may be appended in several batches. A change that
    concerns any number of partitions is worked out in slices: `rest` gives further records when those before are
    replayed. Until it has ended nothing else is handled, so that it is one step for everybody.

    With a `kraft_upgrade` the quorum has to agree first. Afterwards the request is handled anew, unless it
    is `validate_only`.
    """

    records: tuple[Versioned, ...]
    reply: Any
    is_atomic: bool = True
    rest: Iterator[tuple[Versioned, ...]] = iter(())
    kraft_upgrade: KRaftUpgrade | None = None
    refusal: Reject | None = None
    """Why nothing is done, for the log: not every response has room for it."""


Steps = Iterable[Versioned | None]
"""Records that are worked out as they are taken; None for each partition that was looked at and stays as it is."""

SLICE_WORK: Final = 1000
"""How many partitions are looked at in a slice: some milliseconds, with what becomes of the records."""
RECORD_WORK: Final = 20
"""How many partitions can be looked at in the time that one record takes."""


def in_slices(steps: Steps, reply: object, then: Callable[[], None] = lambda: None) -> Result:
    """A result that is worked out slice by slice; `then` is called when all of it is replayed."""
    slices = _slices(steps, then)
    return Result(next(slices), reply, is_atomic=False, rest=slices)


def _slices(steps: Steps, then: Callable[[], None]) -> Iterator[tuple[Versioned, ...]]:
    records: list[Versioned] = []
    work = 0
    for step in steps:
        work += 1
        if step is not None:
            records.append(step)
            work += RECORD_WORK
        if work >= SLICE_WORK:
            yield tuple(records)
            records, work = [], 0
    yield tuple(records)
    then()


class EffectiveConfig(Protocol):
    """A setting as it is in force, and where it comes from (DescribeConfigs' numbers)."""

    @property
    def name(self) -> str: ...
    @property
    def value(self) -> str | None: ...
    @property
    def source(self) -> int: ...
    @property
    def is_sensitive(self) -> bool: ...
    @property
    def is_read_only(self) -> bool: ...


class ConfigRules(Protocol):
    """What the controller must know of configs. The node's own settings are part of the rules."""

    def is_list(self, resource_type: int, name: str) -> bool:
        """Whether values can be appended to the setting."""
        ...

    def default(self, resource_type: int, name: str) -> str | None:
        """What an append to an unset list starts from."""
        ...

    def check(
        self, resource_type: int, resource_name: str, configs: Mapping[str, str], changed: Mapping[str, str | None]
    ) -> None:
        """Reject what a resource must not have. `configs` is all it will have, `changed` what is new or removed."""
        ...

    def topic_value(
        self, name: str, topic: Mapping[str, str], broker: Mapping[str, str], cluster: Mapping[str, str]
    ) -> str:
        """One setting of a topic that has these dynamic configs itself, from the broker and from the cluster."""
        ...

    def topic_configs(
        self, topic: Mapping[str, str], broker: Mapping[str, str], cluster: Mapping[str, str]
    ) -> Sequence[EffectiveConfig]:
        """All settings of such a topic, by name."""
        ...


class ControllerSettings(msgspec.Struct, frozen=True):
    """What the node's configuration says to the controller."""

    node_id: int
    cluster_id: str
    num_partitions: int = 1
    default_replication_factor: int = 1
    delete_topic_enable: bool = True
    min_insync_replicas: int = 1
    broker_session_timeout_ms: int = 9_000
    rebalances_leaders: bool = True
    leader_imbalance_check_interval_ms: int = 300_000
    unclean_election_interval_ms: int = 300_000
    token_secret_key: str | None = None
    token_max_lifetime_ms: int = 604_800_000
    token_expiry_time_ms: int = 86_400_000
    token_expiry_check_interval_ms: int = 3_600_000
    supported_features: Mapping[str, tuple[int, int]] = msgspec.field(default_factory=lambda: SUPPORTED)


class ControllerState(msgspec.Struct, frozen=True):
    """What handlers read: the image, the rules, the settings, the soft sessions, and the secrets of tokens."""

    image: MetadataImage
    rules: ConfigRules
    settings: ControllerSettings
    sessions: BrokerSessions
    token_secrets: TokenSecrets
