"""The facts of an exchange for its summary line: groups, topics, errors, records.

The schemas say which fields hold them. For each message and version, a plan that visits only those fields is made once.

Newer versions name topics by id only. `TopicNames` learns from every struct that holds both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal, NamedTuple

from ottla.explain.exchanges import Exchange, Message
from ottla.explain.open_records import METADATA_TOPIC, METADATA_TOPIC_ID
from ottla.explain.values_text import error_name
from ottla.wire.batch_view import BatchView, split_batches
from ottla.wire.compile import message_shape
from ottla.wire.fault import WireError
from ottla.wire.shape import ZERO_UUID, FieldShape, Struct, Type
from ottla.wire.values import uuid_text

__all__ = ["Facts", "TopicNames", "exchange_facts"]

TOPICS_KNOWN_MAX = 100_000
NAMES_MAX = 1_000
"""How many different groups or topics of one exchange are remembered."""
GROUP_KEY_TYPE = 0

What = Literal["group", "topic", "topic id", "error", "records"]


@dataclass(slots=True)
class Facts:
    """The facts of one exchange, in the order of its fields."""

    groups: dict[str, None] = field(default_factory=dict)
    topics: dict[str, None] = field(default_factory=dict)
    """Names; for a topic whose name was never seen, its id."""
    errors: Counter[str] = field(default_factory=Counter)
    """Names of the error codes in the response that are not NONE."""
    record_count: int = 0
    batch_count: int = 0


class TopicNames:
    """The names of topic ids, learned from messages. `known` is asked for those that were not."""

    def __init__(self, known: Callable[[bytes], str | None] = lambda topic_id: None) -> None:
        self._names = {METADATA_TOPIC_ID: METADATA_TOPIC}
        self._known = known

    def __call__(self, topic_id: bytes) -> str | None:
        return self._names.get(topic_id) or self._known(topic_id)

    def learn(self, topic_id: bytes, name: str | None) -> None:
        if name and topic_id != ZERO_UUID and len(self._names) < TOPICS_KNOWN_MAX:
            self._names[topic_id] = name

    def text(self, topic_id: bytes) -> str:
        """The name or, where it is not known, the id."""
        return self(topic_id) or uuid_text(topic_id)


def exchange_facts(exchange: Exchange, topic_names: TopicNames) -> Facts:
    """The facts of request and response together."""
    facts = Facts()
    # The response may give the names of topic ids in the request.
    for message in (exchange.response, exchange.request):
        if message is not None and message.body is not None:
            _learn(message.body, _plan_of(message.name, message.version), topic_names)
    for message in (exchange.request, exchange.response):
        if message is not None and message.body is not None:
            _gather(message.body, _plan_of(message.name, message.version), facts, topic_names)
            _add_coordinator_keys(message, facts)
    return facts


# --- plans ------------------------------------------------------------------------------------------------------------


class _Leaf(NamedTuple):
    attr: str
    what: What
    is_array: bool


class _Step(NamedTuple):
    attr: str
    is_array: bool
    plan: _Plan


class _Plan(NamedTuple):
    leaves: tuple[_Leaf, ...]
    steps: tuple[_Step, ...]
    name_attr: str | None
    """If both are set, the struct has a topic id and its name."""
    id_attr: str | None
    teaches: bool
    """Whether the struct, or one below it, has both."""


@cache
def _plan_of(name: str, version: int) -> _Plan:
    return _plan(message_shape(name, version))


def _plan(shape: Struct) -> _Plan:
    leaves, steps = [], []
    for member in (*shape.plain, *shape.tagged):
        inner = member.type.element or member.type
        is_array = member.type.kind == "array"
        what = _what(member, inner)
        if what is not None:
            leaves.append(_Leaf(member.attr, what, is_array))
        elif inner.struct is not None:
            plan = _plan(inner.struct)
            if plan.leaves or plan.steps:
                steps.append(_Step(member.attr, is_array, plan))
    names = [leaf.attr for leaf in leaves if leaf.what == "topic" and not leaf.is_array]
    ids = [leaf.attr for leaf in leaves if leaf.what == "topic id" and not leaf.is_array]
    teaches = bool(names and ids) or any(step.plan.teaches for step in steps)
    return _Plan(tuple(leaves), tuple(steps), names[0] if names else None, ids[0] if ids else None, teaches)


def _what(member: FieldShape, inner: Type) -> What | None:
    if inner.kind == "string" and member.field.entity == "groupId":
        return "group"
    if inner.kind == "string" and member.field.entity == "topicName":
        return "topic"
    if inner.kind == "uuid" and member.name.startswith("TopicId"):
        return "topic id"
    if inner.kind == "int16" and member.name.endswith("ErrorCode"):
        return "error"
    return "records" if inner.kind == "records" else None


# --- walks ------------------------------------------------------------------------------------------------------------


def _learn(value: Any, plan: _Plan, topic_names: TopicNames) -> None:
    if not plan.teaches:
        return
    if plan.name_attr is not None and plan.id_attr is not None:
        topic_names.learn(getattr(value, plan.id_attr), getattr(value, plan.name_attr))
    for step in plan.steps:
        if step.plan.teaches:
            for inner in _elements(getattr(value, step.attr), step.is_array):
                _learn(inner, step.plan, topic_names)


def _gather(value: Any, plan: _Plan, facts: Facts, topic_names: TopicNames) -> None:
    for attr, what, is_array in plan.leaves:
        held = getattr(value, attr)
        if what == "error":
            if held:
                facts.errors[error_name(held)] += 1
        elif held is not None:
            for item in held if is_array else (held,):
                _add(what, item, facts, topic_names)
    for step in plan.steps:
        for inner in _elements(getattr(value, step.attr), step.is_array):
            _gather(inner, step.plan, facts, topic_names)


def _elements(held: Any, is_array: bool) -> Iterable[Any]:
    if held is None:
        return ()
    elements: Iterable[Any] = held if is_array else (held,)
    return elements


def _add(what: What, item: Any, facts: Facts, topic_names: TopicNames) -> None:
    if what == "records":
        _count_records(item, facts)
    elif what == "group":
        _remember(facts.groups, item)
    elif what == "topic":
        _remember(facts.topics, item)
    elif item != ZERO_UUID:
        _remember(facts.topics, topic_names.text(item))


def _remember(names: dict[str, None], name: str) -> None:
    if name and len(names) < NAMES_MAX:
        names[name] = None


def _count_records(data: bytes | memoryview, facts: Facts) -> None:
    try:
        for batch in split_batches(data):
            facts.batch_count += 1
            # A compressed message set of the old formats is not decompressed only to count its messages.
            facts.record_count += batch.record_count if isinstance(batch, BatchView) else 1
    except WireError:  # count what can be counted; the tree shows the error
        return


def _add_coordinator_keys(message: Message, facts: Facts) -> None:
    """FindCoordinator has groups, transactional ids and share partitions in one field."""
    body: Any = message.body
    if message.name != "FindCoordinatorRequest" or body.key_type != GROUP_KEY_TYPE:
        return
    for key in body.coordinator_keys or (body.key,):
        _remember(facts.groups, key)
