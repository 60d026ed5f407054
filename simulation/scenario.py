"""Scenarios: conversations with a coordinator, as text.

A file is a sequence of blocks, separated by empty lines. A block is commands, a line `----`, and their output:

    send c1 JoinGroup {group_id: g, protocol_type: consumer, protocols: [{name: range, metadata: subscription(t)}]}
    ----
    c1 <- JoinGroup error=MEMBER_ID_REQUIRED member_id=c1-#1

`run_text` returns the same text with the actual output, so a test compares two texts and a rewrite replaces one by the
other. After every block the law of `ottla.core.coordinator.contract` is checked, with compaction after the last one; if
it fails, the output says so and `Scenario.faults` has it.

The commands are in `simulation.commands`; docs/how-to/testing.md describes them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from ottla import wire
from ottla.core.coordinator.contract import Authorize, Core, Outcome, World
from ottla.core.groups.consumer import validation as consumer
from ottla.core.groups.modern.target_jobs import ComputeTarget
from ottla.core.groups.streams import validation as streams
from ottla.core.share.group import validation as share
from ottla.log.partition import Partition
from ottla.log.producer_state import read_marker
from ottla.testing.clock import WALL_START_MS, VirtualClock
from ottla.wire.batch import BatchView
from ottla.wire.errors import ErrorCode
from ottla.wire.fault import WireError
from ottla.wire.index import MESSAGES
from ottla.wire.keyed import decode_keyed
from ottla.wire.reject import Reject
from ottla.wire.types.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.wire.types.share_group_heartbeat import ShareGroupHeartbeatRequest
from ottla.wire.types.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from simulation.coordinator_kinds import CoordinatorKind, MakeCore
from simulation.environment import Environment
from simulation.host import CoordinatorHost
from simulation.machine import Machine
from simulation.message_builder import Builder, field_name
from simulation.renderer import Renderer
from simulation.shorthand import ShorthandError

__all__ = ["RULE", "Block", "Scenario", "ScenarioError", "Token", "join_lines", "parse_blocks", "run_text"]

RULE: Final = "----"
CHECKS: Final[Mapping[type, Callable[[Any, World, Authorize], None]]] = {
    ConsumerGroupHeartbeatRequest: consumer.check_heartbeat,
    ShareGroupHeartbeatRequest: share.check_heartbeat,
    StreamsGroupHeartbeatRequest: streams.check_heartbeat,
}
"""Checks of the handlers before a request reaches its coordinator."""
_NAMED: Final = re.compile(r"\$(\w+)(?:\.(\w+))?|#(\d+)|T\+(\d+)\b")


class ScenarioError(Exception):
    """A scenario that cannot be run: a command or a field does not exist."""


class Block(NamedTuple):
    commands: list[str]
    """The commands, with the comments before them."""
    expected: list[str]
    has_output: bool
    """Whether there is a line `----`; comments alone have none."""


class Token(NamedTuple):
    """The client and request of a response."""

    client: str
    api: str
    version: int


class Client:
    """A client: how it introduces itself, and the last values that it received."""

    def __init__(self, name: str) -> None:
        self.client_id = name
        self.host = "/127.0.0.1"
        self.told: dict[str, Any] = {}
        """Field of a response -> its last value."""


class Scenario:
    """A coordinator and a conversation with it. It observes the host and writes lines."""

    def __init__(self, kind: CoordinatorKind, make_core: MakeCore | None = None) -> None:
        self.lines: list[str] = []
        self.faults: list[str] = []
        self.clock = VirtualClock()
        self.environment = Environment()
        self.clients: dict[str, Client] = {}
        self.defaults: dict[str, dict[str, Any]] = {}
        self.macros: dict[str, str] = {}
        self.denied: set[tuple[int, int, str]] = set()
        self.open_effects: list[tuple[Any, Callable[[Outcome], None]]] = []
        self.hides_records = False
        topics = self.environment.topics
        self.builder = Builder(self._resolve, self.topic_id)
        self.renderer = Renderer(self.environment.ids.shorten, topics.name_of_id)
        self.topic = kind.topic
        self._is_compacted = kind.is_compacted
        machine = Machine(self.clock)
        self.host = CoordinatorHost(make_core or kind.make_core, kind.topic, self.environment, machine, self)

    @property
    def core(self) -> Core:
        return self.host.core

    def client(self, name: str) -> Client:
        return self.clients.setdefault(name, Client(name))

    def topic_id(self, name: str) -> bytes:
        topic = self.environment.topics.by_name(name)
        if topic is None:
            raise ScenarioError(f"there is no topic {name!r}; create it with `topic {name} partitions=1`")
        return topic.topic_id

    def write(self, line: str) -> None:
        self.lines.append(line)

    # --- running ------------------------------------------------------------------------------------------------------

    def run_block(self, block: Block, *, is_last: bool) -> list[str]:
        """Run the commands; returns their output."""
        from simulation.commands import run_command

        self.lines = []
        for command in join_lines(block.commands):
            try:
                run_command(self, command)
            except (ShorthandError, WireError) as error:
                raise ScenarioError(f"in {command!r}: {error}") from error
            self.host.turn()
        for fault in self.host.check_law(compacted=is_last and self._is_compacted):
            self.faults.append(fault)
            self.write(f"BROKEN LAW {self.environment.ids.shorten(fault)}")
        return self.lines or ["ok"]

    def advance(self, by_ms: int) -> None:
        """Let time pass, stopping at every deadline."""
        end_ms = self.clock.monotonic_ms() + by_ms
        while (at_ms := self.host.next_at_ms()) is not None and at_ms <= end_ms:
            self.clock.advance_to(at_ms)
            self.host.expire()
            self.host.turn()
        self.clock.advance_to(end_ms)

    # --- requests -----------------------------------------------------------------------------------------------------

    def send(self, client: str, api: str, version: int | None, fields: Mapping[str, Any]) -> None:
        """Send a request to the coordinator. Kafka's requests go through the codec, so that their version counts."""
        name = f"{api}Request"
        target = self._request_class(api)
        given = {field_name(target, key): value for key, value in self.defaults.get(api, {}).items()}
        given.update({field_name(target, key): value for key, value in fields.items()})
        request = self.builder.message(target, given)
        if name in MESSAGES:
            version = _latest(name) if version is None else version
            request = _through_codec(request, name, version)
        known, token = self.client(client), Token(client, api, version or 0)
        try:
            if (check := CHECKS.get(type(request))) is not None:
                check(request, self.environment.world, self.authorize)
        except Reject as reject:
            self.refused(token, reject.code, reject.message)
            return
        self.host.handle(
            request,
            token,
            api_version=version or 0,
            client_id=known.client_id,
            client_host=known.host,
            authorize=self.authorize,
        )

    def _request_class(self, api: str) -> type:
        handled: dict[str, type] = {each.__name__: each for each in getattr(self.core, "_handlers", {})}
        for name in (f"{api}Request", api):
            if name in handled:
                return handled[name]
        known = ", ".join(sorted(each.removesuffix("Request") for each in handled))
        raise ScenarioError(f"the coordinator has no handler for {api}; it has {known}")

    def authorize(self, operation: Any, resource_type: Any, name: str) -> bool:  # noqa: ANN401
        return (int(operation), int(resource_type), name) not in self.denied

    def _resolve(self, text: str) -> Any:  # noqa: ANN401
        """`$c1`, `$c1.generation_id`: values that c1 received; `#3`: the third id; `T+5`: 5 ms after the start."""
        whole = _NAMED.fullmatch(text)
        if whole is not None and whole[3] is None:
            return self._named(whole)
        return _NAMED.sub(lambda match: str(self._named(match)), text)

    def _named(self, match: re.Match[str]) -> Any:  # noqa: ANN401
        if match[4] is not None:
            return WALL_START_MS + int(match[4])
        if match[3] is not None:
            return self.environment.ids.lengthen(int(match[3]))
        field = match[2] or "member_id"
        told = self.client(match[1]).told
        if field not in told:
            raise ScenarioError(f"{match[1]} was never told a {field}")
        return told[field]

    # --- what leaves the host -----------------------------------------------------------------------------------------

    def replayed(self, partition: Partition, new_core: Callable[[], Core]) -> None:
        """A start has no output."""

    def replied(self, token: Token, message: Any) -> None:  # noqa: ANN401
        trouble = ""
        name = type(message).__name__
        if name in MESSAGES:
            try:
                message = _through_codec(message, name, token.version)
            except WireError as error:
                trouble = f" (cannot be sent in version {token.version}: {error})"
        self._remember(token.client, message)
        fields = self.renderer.message(message) if hasattr(message, "__struct_fields__") else _other(self, message)
        self.write(f"{token.client} <- {token.api} {fields or 'ok'}{trouble}")

    def _remember(self, client: str, message: Any) -> None:  # noqa: ANN401
        told = self.client(client).told
        for name in getattr(message, "__struct_fields__", ()):
            value = getattr(message, name)
            if value not in ("", None):
                told[name] = value

    def refused(self, token: Token, code: ErrorCode, message: str | None) -> None:
        text = "" if message is None else f" {message!r}"
        self.write(f"{token.client} <- {token.api} refused={code.name}{self.environment.ids.shorten(text)}")

    def appended(self, batch: BatchView) -> None:
        if self.hides_records:
            return
        producer = f"[{batch.producer_id}/{batch.producer_epoch}]" if batch.is_transactional else ""
        if batch.is_control:
            marker = read_marker(batch)
            assert marker is not None
            self.write(f"marker{producer} {'abort' if marker.is_abort else 'commit'}")
            return
        for record in batch.records():
            value = None if record.value is None else bytes(record.value)
            keyed = decode_keyed(self.topic, bytes(record.key or b""), value)
            self.write(f"record{producer} {self.renderer.record(keyed)}")

    def effect(self, effect: Any, done: Callable[[Outcome], None]) -> None:  # noqa: ANN401
        self.open_effects.append((effect, done))
        self.write(f"effect {type(effect).__name__} {_other(self, _without_bytes(effect))}")

    def lost(self, error: Exception) -> None:
        self.write(f"lost: {error.code.name if isinstance(error, Reject) else error}")

    def failed(self, call: str, error: Exception) -> None:
        self.faults.append(f"{call}: {error!r}")
        self.write(f"FAILED {call}: {error!r}")


def _other(scenario: Scenario, value: Any) -> str:  # noqa: ANN401
    """A value that is not a message of Kafka."""
    if hasattr(value, "_fields"):
        return scenario.renderer.message(value)
    return scenario.renderer.value(value)


def _without_bytes(effect: Any) -> Any:  # noqa: ANN401
    """An effect, with how many parts it has in place of their bytes, which differ between releases of Python."""
    if not isinstance(effect, ComputeTarget):
        return effect
    fields: dict[str, Any] = effect._asdict() | {"parts": len(effect.parts)}
    return ComputeTarget(**fields)


def _through_codec(message: Any, name: str, version: int) -> Any:  # noqa: ANN401
    return wire.decode(name, version, wire.encode(message, version))


def _latest(name: str) -> int:
    return MESSAGES[name].high


# --- files ------------------------------------------------------------------------------------------------------------


def parse_blocks(text: str) -> list[Block]:
    blocks = []
    for part in re.split(r"\n[ \t]*\n", text.strip("\n")):
        lines = part.split("\n")
        at = lines.index(RULE) if RULE in lines else len(lines)
        blocks.append(Block(lines[:at], lines[at + 1 :], at < len(lines)))
    return blocks


def join_lines(lines: list[str]) -> list[str]:
    """Commands without comments; a line that begins with a space continues the one before."""
    found: list[str] = []
    for line in lines:
        if line.startswith("#") or not line.strip():
            continue
        if line[0].isspace() and found:
            found[-1] += " " + line.strip()
        else:
            found.append(line)
    return found


def run_text(text: str, kind: CoordinatorKind, make_core: MakeCore | None = None) -> tuple[str, list[str]]:
    """The text with the actual output, and the violations of the law."""
    scenario = Scenario(kind, make_core)
    blocks = parse_blocks(text)
    seen = []
    for index, block in enumerate(blocks):
        if not block.has_output and not join_lines(block.commands):
            seen.append("\n".join(block.commands))
            continue
        output = scenario.run_block(block, is_last=index == len(blocks) - 1)
        seen.append("\n".join([*block.commands, RULE, *output]))
    return "\n\n".join(seen) + "\n", scenario.faults
