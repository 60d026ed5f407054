"""Commands for conversations with streams groups. All are about group g unless they say otherwise.

topology {fields}                     the topology of joins from here on; before, it is one subtopology 0 that reads t
sjoin A [version] [{fields}]          StreamsGroupHeartbeat with epoch 0; the member's id and its process's are A
sbeat A [version] [{fields}]          a heartbeat with the epochs that A was last told
sown A [version] [0_1 s1_0 w0_2 ...]  the same, with the tasks that A owns (s: standby, w: warm-up)
sreport A [0_1=7/9 ...]               a heartbeat of version 1 that reports the offset 7 of 9 for task 0_1
sleave A [version] [{fields}]         a heartbeat with epoch -1
sdescribe                             StreamsGroupDescribe, its states, epochs and tasks
sassigned A B ...                     make these members a stable group, quietly
splugin                               a plugin keeps topology descriptions, and sessions last
spush A [{fields}]                    A pushes the description of a topology at epoch 0, of one source and one sink
sshow [g h ...]                       DescribeStreamsGroup with the topology's description
sheld                                 the plugin gives the description that it was last asked to set
"""

from __future__ import annotations

from typing import Any

from ottla.core.coordinator.contract import Outcome
from ottla.core.groups.streams.effects import GetDescription, SetDescription
from simulation.commands import Words, command
from simulation.scenario import Scenario

TOPOLOGY = {"subtopologies": [{"subtopology_id": "0", "source_topics": ["t"]}]}


def told(scenario: Scenario, client: str, field: str, default: Any) -> Any:
    return scenario.client(client).told.get(field, default)


def heartbeat(scenario: Scenario, client: str, version: int | None, fields: dict[str, Any]) -> None:
    known = {"group_id": "g", "member_id": client, "rebalance_timeout_ms": -1}
    scenario.send(client, "StreamsGroupHeartbeat", 0 if version is None else version, known | fields)


def given(words: Words) -> dict[str, Any]:
    return words.value() if words.text else {}


@command("topology")
def topology(scenario: Scenario, words: Words) -> None:
    scenario.defaults["streams topology"] = words.value()


@command("sjoin")
def join(scenario: Scenario, words: Words) -> None:
    client, version = words.next(), words.next_number()
    fields = {
        "member_epoch": 0,
        "endpoint_information_epoch": -1,
        "rebalance_timeout_ms": 300_000,
        "process_id": client,
        "topology": scenario.defaults.get("streams topology", TOPOLOGY),
        "active_tasks": [],
        "standby_tasks": [],
        "warmup_tasks": [],
    }
    heartbeat(scenario, client, version, fields | given(words))


def beat(scenario: Scenario, client: str, version: int | None, fields: dict[str, Any]) -> None:
    epochs = {
        "member_epoch": told(scenario, client, "member_epoch", 0),
        "endpoint_information_epoch": told(scenario, client, "endpoint_information_epoch", 0),
    }
    heartbeat(scenario, client, version, epochs | fields)


@command("sbeat")
def plain_beat(scenario: Scenario, words: Words) -> None:
    client, version = words.next(), words.next_number()
    beat(scenario, client, version, given(words))


@command("sown")
def owning_beat(scenario: Scenario, words: Words) -> None:
    client, version = words.next(), words.next_number()
    lists: dict[str, dict[str, list[int]]] = {"": {}, "s": {}, "w": {}}
    while words.text and not words.text.startswith("{"):
        task = words.next()
        role = task[0] if task[0] in "sw" else ""
        subtopology_id, _, partition = task.removeprefix(role).partition("_")
        lists[role].setdefault(subtopology_id, []).append(int(partition))
    owned = {
        name: [{"subtopology_id": each, "partitions": partitions} for each, partitions in lists[role].items()]
        for name, role in (("active_tasks", ""), ("standby_tasks", "s"), ("warmup_tasks", "w"))
    }
    beat(scenario, client, version, owned | given(words))


@command("sreport")
def reporting_beat(scenario: Scenario, words: Words) -> None:
    client = words.next()
    beat(scenario, client, 1, report(words))


def report(words: Words) -> dict[str, Any]:
    offsets, ends = [], []
    while words.text and not words.text.startswith("{"):
        task, _, numbers = words.next().partition("=")
        subtopology_id, _, partition = task.partition("_")
        known = {"subtopology_id": subtopology_id, "partition": int(partition)}
        offset, _, end = numbers.partition("/")
        offsets.append(known | {"offset": int(offset)})
        ends.append(known | {"offset": int(end)})
    return {"task_offsets": offsets, "task_end_offsets": ends}


@command("sleave")
def leave(scenario: Scenario, words: Words) -> None:
    client, version = words.next(), words.next_number()
    heartbeat(scenario, client, version, {"member_epoch": -1} | given(words))


@command("sdescribe")
def describe(scenario: Scenario, words: Words) -> None:
    group = scenario.core.families["streams"]._table.get("g")  # type: ignore[attr-defined]
    if group is None:
        scenario.write("no group")
        return
    scenario.write(f"{group.state_name()} epoch={group.group_epoch} assignment={group.assignment_epoch}")
    for member_id in sorted(group.members):
        current = group.members[member_id].current
        parts = [f"epoch={current.member_epoch}/{current.previous_member_epoch}", current.state.name]
        parts.append("has " + _tasks(current.assigned))
        if not current.pending.is_nothing:
            parts.append("gives up " + _tasks(current.pending))
        scenario.write(f"  {member_id} {' '.join(parts)}; target {_tasks(group.target(member_id))}")


def _tasks(tasks: Any) -> str:
    marks = ("", "s", "w")
    shown = [f"{mark}{each[0]}_{each[1]}" for mark, role in zip(marks, tasks, strict=True) for each in sorted(role)]
    return " ".join(shown) or "nothing"


@command("sassigned")
def assigned(scenario: Scenario, words: Words) -> None:
    """Joins all, lets the initial delay pass, and gives everybody his tasks."""
    heard, hides = scenario.lines, scenario.hides_records
    scenario.lines, scenario.hides_records = [], True
    for client in words.text.split():
        join(scenario, Words(client))
        scenario.host.turn()
    scenario.advance(3_000)
    for client in words.text.split():
        plain_beat(scenario, Words(client))
        scenario.host.turn()
    scenario.advance(2_000)
    scenario.lines, scenario.hides_records = heard, hides
    describe(scenario, words)


# --- topology descriptions --------------------------------------------------------------------------------------------

DESCRIPTION = {
    "subtopologies": [
        {
            "subtopology_id": "0",
            "nodes": [
                {"name": "in", "node_type": 1, "source_topics": ["t"], "successors": ["out"]},
                {"name": "out", "node_type": 3, "sink_topic": "u"},
            ],
        }
    ]
}


@command("splugin")
def plugin(scenario: Scenario, words: Words) -> None:
    settings = scenario.environment.settings
    settings.set("group.streams.topology.description.plugin.class", "some.Plugin")
    for name in ("group.streams.session.timeout.ms", "group.streams.max.session.timeout.ms"):
        settings.set(name, "2000000000")
    settings.set("group.streams.initial.rebalance.delay.ms", "0")
    scenario.environment.world.settings_version += 1


@command("spush")
def push(scenario: Scenario, words: Words) -> None:
    client = words.next()
    fields = {"group_id": "g", "member_id": client, "topology_description": DESCRIPTION} | given(words)
    scenario.send(client, "StreamsGroupTopologyDescriptionUpdate", 0, fields)


@command("sshow")
def show(scenario: Scenario, words: Words) -> None:
    for group_id in words.text.split() or ["g"]:
        fields = {"group_id": group_id, "include_topology_description": True}
        scenario.send("tool", "DescribeStreamsGroup", 1, fields)


@command("sheld")
def held(scenario: Scenario, words: Words) -> None:
    effect, done = scenario.open_effects.pop(0)
    if isinstance(effect, SetDescription):
        scenario.defaults["held description"] = effect.description  # type: ignore[assignment]
        done(Outcome())
        return
    assert isinstance(effect, GetDescription), effect
    done(Outcome(value=scenario.defaults["held description"]))
