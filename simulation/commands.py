"""The commands of scenarios. `command` adds one: a function of the scenario and of the words after its name.

@command("join")
def join(scenario: Scenario, words: Words) -> None:
    scenario.send(words.next(), "JoinGroup", 9, {...})
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from ottla.core.coordinator.contract import Outcome, Producer
from ottla.wire.access import Operation, ResourceType
from ottla.wire.errors import ErrorCode
from simulation.scenario import Scenario, ScenarioError, Token
from simulation.shorthand import parse

__all__ = ["COMMANDS", "Words", "command", "run_command"]


class Words:
    """The text after a command's name: words, options `name=value`, and short-hand up to the end of the line."""

    def __init__(self, text: str) -> None:
        self.text = text.strip()

    def next(self, default: str | None = None) -> str:
        """The next word."""
        word, _, rest = self.text.partition(" ")
        if not word:
            if default is None:
                raise ScenarioError("the command wants one more word")
            return default
        self.text = rest.strip()
        return word

    def next_number(self) -> int | None:
        """The next word, if it is a number."""
        return int(self.next()) if re.match(r"-?\d+(\s|$)", self.text) else None

    def options(self) -> dict[str, str]:
        """The rest of the line, as `name=value`; a value in brackets may have spaces."""
        found = dict(re.findall(r"([\w.-]+)=(\[.*?\](?=\s|$)|\{.*\}|\"[^\"]*\"|\S*)", self.text))
        self.text = ""
        return found

    def value(self) -> Any:  # noqa: ANN401
        """The rest of the line, as short-hand."""
        text, self.text = self.text, ""
        return parse(text)


Command = Callable[[Scenario, Words], None]
COMMANDS: Final[dict[str, Command]] = {}


def command(name: str) -> Callable[[Command], Command]:
    def add(function: Command) -> Command:
        COMMANDS[name] = function
        return function

    return add


def run_command(scenario: Scenario, text: str) -> None:
    words = Words(text)
    name = words.next()
    if name in scenario.macros:
        run_command(scenario, _expanded(scenario.macros[name], words.text))
        return
    if name not in COMMANDS:
        raise ScenarioError(f"there is no command {name!r}; there are {', '.join(sorted(COMMANDS))}")
    COMMANDS[name](scenario, words)


def _expanded(macro: str, arguments: str) -> str:
    """`$1`, `$2`: the words after the name; `$*`: the words without a number, as one text."""
    given = arguments.split()
    numbers = [int(number) for number in re.findall(r"\$(\d)", macro)]
    rest = " ".join(given[max(numbers, default=0) :])
    text = re.sub(r"\$(\d)", lambda match: "".join(given[int(match[1]) - 1 : int(match[1])]), macro)
    return text.replace("$*", rest)


# --- requests ---------------------------------------------------------------------------------------------------------


@command("send")
def _send(scenario: Scenario, words: Words) -> None:
    """send c1 JoinGroup [version] [{fields}]"""
    client, api, version = words.next(), words.next(), words.next_number()
    scenario.send(client, api, version, words.value() if words.text else {})


@command("defaults")
def _defaults(scenario: Scenario, words: Words) -> None:
    """defaults JoinGroup {fields}: what `send` fills in where it is not told"""
    api = words.next()
    scenario.defaults[api] = words.value()


@command("define")
def _define(scenario: Scenario, words: Words) -> None:
    """define hb send $1 Heartbeat {group_id: g, member_id: $2}: a command of your own"""
    name = words.next()
    scenario.macros[name] = words.text


@command("client")
def _client(scenario: Scenario, words: Words) -> None:
    """client c1 id=app host=/10.0.0.1: how a client introduces itself"""
    client = scenario.client(words.next())
    options = words.options()
    client.client_id = options.get("id", client.client_id)
    client.host = options.get("host", client.host)


# --- time and place ---------------------------------------------------------------------------------------------------


@command("advance")
def _advance(scenario: Scenario, words: Words) -> None:
    """advance 3000: let milliseconds pass; deadlines come in their order"""
    scenario.advance(int(words.next()))


@command("set-wall-clock")
def _set_wall_clock(scenario: Scenario, words: Words) -> None:
    """set-wall-clock -5000: somebody sets the wall clock, forward or back"""
    scenario.clock.jump_wall(int(words.next()))


@command("topic")
def _topic(scenario: Scenario, words: Words) -> None:
    """topic t partitions=4 [racks=[[a, b], [b]]]: create a topic, or let it grow"""
    name, options = words.next(), words.options()
    racks = [frozenset(each) for each in parse(options["racks"])] if "racks" in options else ()
    change = scenario.environment.topics.put(name, int(options.get("partitions", "1")), racks)
    scenario.host.topics_changed(change)


@command("delete-topic")
def _delete_topic(scenario: Scenario, words: Words) -> None:
    """delete-topic t"""
    scenario.host.topics_changed(scenario.environment.topics.delete(words.next()))


@command("config")
def _config(scenario: Scenario, words: Words) -> None:
    """config group.max.size=2 …: settings of the broker"""
    for name, value in words.options().items():
        scenario.environment.settings.set(name, value)
        scenario.environment.world.settings_version += 1


@command("group-config")
def _group_config(scenario: Scenario, words: Words) -> None:
    """group-config g consumer.session.timeout.ms=50000: settings of one group"""
    group_id = words.next()
    for name, value in words.options().items():
        scenario.environment.set_for_group(group_id, name, value)


@command("feature")
def _feature(scenario: Scenario, words: Words) -> None:
    """feature streams.version=0: the finalized level of a feature"""
    scenario.environment.features.update({name: int(value) for name, value in words.options().items()})


@command("deny")
def _deny(scenario: Scenario, words: Words) -> None:
    """deny READ GROUP g"""
    scenario.denied.add(_right(words))


@command("allow")
def _allow(scenario: Scenario, words: Words) -> None:
    """allow READ GROUP g: take a `deny` back"""
    scenario.denied.discard(_right(words))


def _right(words: Words) -> tuple[int, int, str]:
    return Operation[words.next()], ResourceType[words.next()], words.next()


# --- the log ----------------------------------------------------------------------------------------------------------


@command("restart")
def _restart(scenario: Scenario, words: Words) -> None:
    """restart: the broker is killed and starts again from its log; whoever waited is never answered"""
    scenario.open_effects.clear()
    scenario.host.restart()


@command("unload")
def _unload(scenario: Scenario, words: Words) -> None:
    """unload: leadership moves away"""
    scenario.host.unload()


@command("load")
def _load(scenario: Scenario, words: Words) -> None:
    """load: leadership comes back"""
    scenario.host.load()


@command("hold")
def _hold(scenario: Scenario, words: Words) -> None:
    """hold: the high watermark stands still"""
    scenario.host.is_held = True


@command("release")
def _release(scenario: Scenario, words: Words) -> None:
    """release: the high watermark moves again"""
    scenario.host.is_held = False


@command("fail-write")
def _fail_write(scenario: Scenario, words: Words) -> None:
    """fail-write NOT_ENOUGH_REPLICAS: the next append is refused"""
    scenario.host.replica.refusals.append(ErrorCode[words.next()])


@command("marker")
def _marker(scenario: Scenario, words: Words) -> None:
    """marker 7 0 commit|abort [version=2]: the transaction of producer 7, epoch 0, ends"""
    producer = Producer(int(words.next()), int(words.next()))
    committed = {"commit": True, "abort": False}[words.next()]
    scenario.host.shard.end_transaction(
        producer,
        Token("coordinator", "marker", 0),
        "written",
        committed=committed,
        coordinator_epoch=0,
        transaction_version=int(words.options().get("version", "2")),
    )


@command("records")
def _records(scenario: Scenario, words: Words) -> None:
    """records on|off: whether appended records are shown"""
    scenario.hides_records = words.next() == "off"


# --- effects and looking ----------------------------------------------------------------------------------------------


@command("settle")
def _settle(scenario: Scenario, words: Words) -> None:
    """settle [number] [error=CODE] [message="…"] [value=…]: how an open effect went, the oldest unless numbered"""
    number = words.next_number() or 1
    options = words.options()
    _, done = scenario.open_effects.pop(number - 1)
    error = ErrorCode[options.get("error", "NONE")]
    value = parse(options["value"]) if "value" in options else None
    done(Outcome(error, value, options.get("message")))


@command("timers")
def _timers(scenario: Scenario, words: Words) -> None:
    """timers: the deadlines that are set, as milliseconds from now"""
    deadlines, now_ms = scenario.host.shard.deadlines, scenario.clock.monotonic_ms()
    for at_ms, key in sorted((deadlines.get(key) or 0, key) for key in list(deadlines._at_ms)):
        scenario.write(f"timer +{at_ms - now_ms} {scenario.renderer.value(tuple(key))}")  # type: ignore[arg-type]


@command("state")
def _state(scenario: Scenario, words: Words) -> None:
    """state: the hard state"""
    for key, value in sorted(scenario.core.hard_state().items(), key=repr):
        scenario.write(f"state {scenario.renderer.value(key)} {scenario.renderer.value(value)}")
