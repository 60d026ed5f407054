"""Who leads what in a cluster with nodes of several kinds, and when that changes."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

from ottla.wire.types import FindCoordinatorRequest, MetadataRequest
from tests.component.broker.raw_client import Closed, RawClient
from tests.interop.quorum.members import Quorum

__all__ = ["GROUPS", "PARTITIONS", "QUORUM", "SHARE_STATE", "TRANSACTIONS", "LeadershipWatch"]

QUORUM: Final = "the quorum"
PARTITIONS: Final = "partitions"
GROUPS: Final = "groups"
TRANSACTIONS: Final = "transactions"
SHARE_STATE: Final = "share state"
_SHARE_TOPIC: Final = "__share_group_state"
_KEY_TYPES: Final = {GROUPS: 0, TRANSACTIONS: 1}
_PAUSE_S: Final = 1.0
_TIMEOUT_S: Final = 2.0


class Role(NamedTuple):
    """Something that is led: `role` is one of the constants above."""

    role: str
    name: str


class LeadershipWatch:
    """Looks once a second, in a thread, during the `with` statement. `say` is told what has changed."""

    def __init__(
        self,
        quorum: Quorum,
        *,
        topics: Sequence[str],
        groups: Sequence[str],
        transactional_ids: Sequence[str],
        say: Callable[[str], None],
    ) -> None:
        self._quorum = quorum
        self._topics = (*topics, _SHARE_TOPIC)
        self._keys = {GROUPS: tuple(groups), TRANSACTIONS: tuple(transactional_ids)}
        self._say = say
        self._leaders: dict[Role, int] = {}
        self._seen: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="leadership", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over.set()
        self._thread.join()

    @property
    def seen(self) -> Mapping[str, Mapping[str, int]]:
        """Role -> kind of node -> in how many looks it had something to lead."""
        return self._seen

    def kinds_without(self, role: str) -> list[str]:
        """Kinds of nodes that were not seen in a role yet."""
        return [kind for kind in sorted(set(self._quorum.kinds.values())) if not self._seen[role][kind]]

    def _run(self) -> None:
        while not self._is_over.wait(_PAUSE_S):
            self._note(dict(self._look()))

    def _note(self, found: Mapping[Role, int]) -> None:
        kinds = self._quorum.kinds
        for role in {each.role for each in found}:
            leaders = {leader for each, leader in found.items() if each.role == role}
            self._seen[role].update({kinds[leader] for leader in leaders if leader in kinds})
        changed = {each: leader for each, leader in found.items() if self._leaders.get(each) != leader}
        if changed:
            self._say("leads: " + ", ".join(self._changes(changed)))
        self._leaders.update(found)

    def _changes(self, changed: Mapping[Role, int]) -> Iterator[str]:
        """For each node, what it leads from now on."""
        gained: defaultdict[int, list[str]] = defaultdict(list)
        for each, leader in changed.items():
            gained[leader].append(each.name)
        for leader, names in sorted(gained.items()):
            who = f"{leader} ({self._quorum.kinds[leader]})" if leader in self._quorum.kinds else "nobody"
            yield f"{who}: {' '.join(sorted(names))}"

    # --- one look -----------------------------------------------------------------------------------------------------

    def _look(self) -> Iterator[tuple[Role, int]]:
        """What the leader of the quorum knows; nothing while there is none."""
        view = self._quorum.view()
        if view is None:
            return
        yield Role(QUORUM, QUORUM), view.leader_id
        with suppress(OSError, Closed):
            yield from self._partition_leaders(view.leader_id)
            for role, keys in self._keys.items():
                request = FindCoordinatorRequest(key_type=_KEY_TYPES[role], coordinator_keys=keys)
                for each in self._ask(view.leader_id, request, 6).coordinators:
                    if not each.error_code:
                        yield Role(role, f"{role[:-1]} {each.key}"), each.node_id

    def _partition_leaders(self, at: int) -> Iterator[tuple[Role, int]]:
        wanted = tuple(MetadataRequest.MetadataRequestTopic(name=name) for name in self._topics)
        for topic in self._ask(at, MetadataRequest(wanted, allow_auto_topic_creation=False), 12).topics:
            role = SHARE_STATE if topic.name == _SHARE_TOPIC else PARTITIONS
            for each in topic.partitions:
                yield Role(role, f"{topic.name}-{each.partition_index}"), each.leader_id

    def _ask(self, number: int, request: object, version: int) -> Any:  # noqa: ANN401 - an answer of any kind
        client = RawClient.at(self._quorum.nodes[number].bootstrap_servers)
        with closing(client.connect(timeout_s=_TIMEOUT_S)) as connection:
            return connection.ask(request, version)
