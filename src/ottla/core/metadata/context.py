"""What comes with a request, and what a handler gives back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from ottla.core.metadata.features import SUPPORTED
from ottla.wire.access import Operation, ResourceType
from ottla.wire.keyed import Versioned

if TYPE_CHECKING:
    from ottla.core.metadata.image import MetadataImage
    from ottla.core.metadata.sessions import BrokerSessions

Authorize = Callable[[Operation, ResourceType, str], bool]


def allow_all(operation: Operation, resource_type: ResourceType, name: str) -> bool:
    return True


def unlimited(partition_count: int) -> bool:
    return True


class Context(msgspec.Struct, frozen=True):
    """The circumstances of one request.

    `now_ms` is on the clock of timers, the same as in `Controller.activate` and `expire`: no record tells it.
    `log_end_offset` is the offset that the first record of the answer will get. `new_uuid` draws 16 random bytes.
    `authorize` says whether the principal may do something; `charge` takes the partitions that are created or deleted
    from his quota and says whether there was enough left.
    """

    now_ms: int
    log_end_offset: int
    new_uuid: Callable[[], bytes]
    api_version: int
    kraft_version: int = 1
    authorize: Authorize = allow_all
    charge: Callable[[int], bool] = unlimited


class Result(msgspec.Struct, frozen=True):
    """Records to append, and the reply to give when they are committed.

    An atomic result takes effect as a whole or not at all; another may be appended in several batches.
    """

    records: tuple[Versioned, ...]
    reply: Any
    is_atomic: bool = True


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
    supported_features: Mapping[str, tuple[int, int]] = msgspec.field(default_factory=lambda: SUPPORTED)


class ControllerState(msgspec.Struct, frozen=True):
    """What handlers read: the image, the rules, the settings, and the soft sessions."""

    image: MetadataImage
    rules: ConfigRules
    settings: ControllerSettings
    sessions: BrokerSessions
