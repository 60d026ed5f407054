"""Commands for conversations with share groups. All are about group g unless their fields say otherwise.

shjoin A [{fields}]           ShareGroupHeartbeat with epoch 0; the member's id is A, it subscribes to t
shbeat A [{fields}]           a heartbeat with the epoch that A was last told
shleave A [{fields}]          a heartbeat with epoch -1
shassigned A B ...            make these members a group that has what it is to have, quietly
shdescribe                    epochs, state and partitions of the group and its members
shalter [group] t=0:5,1:7     AlterShareGroupOffsets, partition:offset
shforget [group] t u          DeleteShareGroupOffsets
refuse t=1,2 CODE             the oldest effect went well, but for these partitions
"""

from __future__ import annotations

from typing import Any

from ottla.core.coordinator.contract import Outcome
from ottla.core.share.group.effects import Refusal
from ottla.core.share.group.group import ShareGroup
from ottla.wire.errors import ErrorCode
from simulation.commands import Words, command
from simulation.scenario import Scenario
from tests.scenarios.commands_classic import quiet
from tests.scenarios.commands_consumer import epoch_of, given, partitions

VERSION = 1
ASSIGNMENT_INTERVAL_MS = 1_000


def heartbeat(scenario: Scenario, client: str, fields: dict[str, Any]) -> None:
    scenario.send(client, "ShareGroupHeartbeat", VERSION, {"group_id": "g", "member_id": client} | fields)


def group_of(scenario: Scenario, group_id: str = "g") -> Any:
    return scenario.core.families["share"]._table.get(group_id)  # type: ignore[attr-defined]


@command("shjoin")
def join(scenario: Scenario, words: Words) -> None:
    client = words.next()
    heartbeat(scenario, client, {"member_epoch": 0, "subscribed_topic_names": ["t"]} | given(words))


@command("shbeat")
def beat(scenario: Scenario, words: Words) -> None:
    client = words.next()
    heartbeat(scenario, client, {"member_epoch": epoch_of(scenario, client)} | given(words))


@command("shleave")
def leave(scenario: Scenario, words: Words) -> None:
    client = words.next()
    heartbeat(scenario, client, {"member_epoch": -1} | given(words))


@command("shassigned")
def assigned(scenario: Scenario, words: Words) -> None:
    """Fields may follow a name: `shassigned A B{subscribed_topic_names:[u]}`, without spaces."""
    with quiet(scenario):
        clients = [name.partition("{") for name in words.text.split()]
        for client, brace, fields in clients:
            join(scenario, Words(f"{client} {brace}{fields}"))
            scenario.host.turn()
            settle_all(scenario)
        for _ in range(2):
            scenario.advance(ASSIGNMENT_INTERVAL_MS)
            for client, _, _ in clients:
                beat(scenario, Words(client))
                scenario.host.turn()
                settle_all(scenario)
    describe(scenario, words)


def settle_all(scenario: Scenario) -> None:
    while scenario.open_effects:
        _, done = scenario.open_effects.pop(0)
        done(Outcome())
        scenario.host.turn()


@command("shdescribe")
def describe(scenario: Scenario, words: Words) -> None:
    group = group_of(scenario)
    if not isinstance(group, ShareGroup):
        scenario.write("no share group")
        return
    scenario.write(f"{group.state_name()} epoch={group.group_epoch} assignment={group.assignment_epoch}")
    for what, topics in zip(("initializing", "initialized"), group.state_topics, strict=False):
        if topics:
            found = {topic_id: topic.partitions for topic_id, topic in topics.items()}
            scenario.write(f"  {what} {partitions(scenario, found)}")
    if group.state_topics.deleting:
        scenario.write(f"  deleting {', '.join(sorted(group.state_topics.deleting.values()))}")
    for member_id in sorted(group.members):
        member = group.members[member_id]
        epochs = f"epoch={member.member_epoch}/{member.previous_member_epoch}"
        target = partitions(scenario, group.target(member_id))
        scenario.write(f"  {member_id} {epochs} has {partitions(scenario, member.assigned)}; target {target}")


def group_word(words: Words) -> str:
    """A group's name, if one comes before the topics."""
    first = words.text.split(" ", 1)[0]
    return words.next() if first.startswith("group-") else "g"


@command("shalter")
def alter(scenario: Scenario, words: Words) -> None:
    group_id, topics = group_word(words), []
    for word in words.text.split():
        name, _, pairs = word.partition("=")
        offsets = [pair.split(":") for pair in pairs.split(",")]
        entries = [{"partition_index": int(index), "start_offset": int(offset)} for index, offset in offsets]
        topics.append({"topic_name": name, "partitions": entries})
    scenario.send("admin", "AlterShareGroupOffsets", 0, {"group_id": group_id, "topics": topics})


@command("shforget")
def forget(scenario: Scenario, words: Words) -> None:
    group_id = group_word(words)
    topics = [{"topic_name": name} for name in words.text.split()]
    scenario.send("admin", "DeleteShareGroupOffsets", 0, {"group_id": group_id, "topics": topics})


@command("refuse")
def refuse(scenario: Scenario, words: Words) -> None:
    name, _, numbers = words.next().partition("=")
    code = ErrorCode[words.next()]
    refusals = {(scenario.topic_id(name), int(each)): Refusal(code) for each in numbers.split(",")}
    _, done = scenario.open_effects.pop(0)
    done(Outcome(code, refusals))
