"""Commands for conversations with consumer groups. All are about group g unless their fields say otherwise.

cjoin A [version] [{fields}]          ConsumerGroupHeartbeat with epoch 0; the member's id is A, it subscribes to t
cbeat A [version] [{fields}]          a heartbeat with the epoch that A was last told
cown A t=0,1 u=2 ... [{fields}]       the same, with the partitions that A owns (none if none are named)
cleave A [version] [{fields}]         a heartbeat with epoch -1
away A [{fields}]                     a heartbeat with epoch -2
cdescribe                             states, epochs and partitions of the group and its members
ccommit A epoch t=0,1 [version]       OffsetCommit of offset 1 for these partitions
cassigned A B ...                     make these members a stable group, quietly
outside                               compute all targets outside the event loop from here on
compute                               an assignor answers: the oldest open effect is performed
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ottla.core.coordinator.contract import Outcome
from ottla.core.groups.assignors.computation import answer, request_of
from ottla.core.groups.consumer.group import ConsumerGroup
from simulation.commands import Words, command
from simulation.scenario import Scenario
from simulation.shorthand import parse

VERSION = 1
REBALANCE_TIMEOUT_MS = 60_000


def given(words: Words) -> dict[str, Any]:
    return words.value() if words.text else {}


def heartbeat(scenario: Scenario, client: str, version: int | None, fields: dict[str, Any]) -> None:
    known = {"group_id": "g", "member_id": client}
    scenario.send(client, "ConsumerGroupHeartbeat", VERSION if version is None else version, known | fields)


def epoch_of(scenario: Scenario, client: str) -> int:
    return int(scenario.client(client).told.get("member_epoch", 0))


@command("cjoin")
def join(scenario: Scenario, words: Words) -> None:
    client, version = words.next(), words.next_number()
    fields = {"member_epoch": 0, "rebalance_timeout_ms": REBALANCE_TIMEOUT_MS, "topic_partitions": []}
    changes = given(words)
    if "subscribed_topic_names" not in changes and "subscribed_topic_regex" not in changes:
        fields["subscribed_topic_names"] = ["t"]
    heartbeat(scenario, client, version, fields | changes)


@command("cbeat")
def beat(scenario: Scenario, words: Words) -> None:
    client, version = words.next(), words.next_number()
    heartbeat(scenario, client, version, {"member_epoch": epoch_of(scenario, client)} | given(words))


@command("cown")
def own(scenario: Scenario, words: Words) -> None:
    client, owned = words.next(), []
    while words.text and not words.text.startswith("{"):
        topic, _, partitions = words.next().partition("=")
        owned.append({"topic_id": parse(f"id({topic})"), "partitions": [int(each) for each in partitions.split(",")]})
    fields = {"member_epoch": epoch_of(scenario, client), "topic_partitions": owned}
    heartbeat(scenario, client, VERSION, fields | given(words))


@command("cleave")
def leave(scenario: Scenario, words: Words) -> None:
    client, version = words.next(), words.next_number()
    heartbeat(scenario, client, version, {"member_epoch": -1} | given(words))


@command("away")
def away(scenario: Scenario, words: Words) -> None:
    client = words.next()
    heartbeat(scenario, client, VERSION, {"member_epoch": -2} | given(words))


@command("cdescribe")
def describe(scenario: Scenario, words: Words) -> None:
    group = scenario.core.families["consumer"]._table.get("g")  # type: ignore[attr-defined]
    if not isinstance(group, ConsumerGroup):
        scenario.write("no consumer group")
        return
    scenario.write(f"{group.state_name()} epoch={group.group_epoch} assignment={group.assignment_epoch}")
    for member_id in sorted(group.members):
        member = group.members[member_id]
        parts = [f"epoch={member.member_epoch}/{member.previous_member_epoch}", member.state.name]
        parts.append("has " + partitions(scenario, member.assigned))
        if member.pending_revocation:
            parts.append("gives up " + partitions(scenario, member.pending_revocation))
        target = partitions(scenario, group.target(member_id))
        scenario.write(f"  {scenario.environment.ids.shorten(member_id)} {' '.join(parts)}; target {target}")


def partitions(scenario: Scenario, topics: Mapping[bytes, Iterable[int]]) -> str:
    known = scenario.environment.topics
    shown = []
    for topic_id, numbers in topics.items():
        topic = known.by_id(topic_id)
        shown.append(f"{topic.name if topic else 'gone'}={','.join(map(str, sorted(numbers)))}")
    return " ".join(sorted(shown)) or "nothing"


@command("cassigned")
def assigned(scenario: Scenario, words: Words) -> None:
    """Joins all and beats until everybody has his partitions."""
    heard, hides = scenario.lines, scenario.hides_records
    scenario.lines, scenario.hides_records = [], True
    clients = words.text.split()
    for client in clients:
        join(scenario, Words(client))
        scenario.host.turn()
    for _ in range(4):
        scenario.advance(1_000)
        for client in clients:
            owned = scenario.core.families["consumer"]._table.get("g").members[client].assigned  # type: ignore[attr-defined]
            own(scenario, Words(f"{client} {partitions(scenario, owned).removeprefix('nothing')}"))
            scenario.host.turn()
    scenario.lines, scenario.hides_records = heard, hides
    describe(scenario, words)


@command("ccommit")
def commit(scenario: Scenario, words: Words) -> None:
    client, epoch = words.next(), int(words.next())
    topic, _, partitions = words.next().partition("=")
    version = words.next_number() or 9
    entries = [{"partition_index": int(each), "committed_offset": 1} for each in partitions.split(",")]
    member_id = "" if client == "nobody" else scenario.client(client).told.get("member_id", client)
    fields = {
        "group_id": "g",
        "member_id": member_id,
        "generation_id_or_member_epoch": epoch,
        "topics": [{"name": topic, "partitions": entries}],
    }
    scenario.send(client, "OffsetCommit", version, fields)


@command("outside")
def outside(scenario: Scenario, words: Words) -> None:
    scenario.environment.world.inline_target_max = 0


@command("compute")
def compute(scenario: Scenario, words: Words) -> None:
    effect, done = scenario.open_effects.pop(0)
    done(Outcome(value=answer(request_of(effect.choice, effect.parts))))
