"""Exchanges for people (a line, or a block with both trees) and for programs (a JSON object per message).

The line::

    04:12:01.123  #1 consumer-orders-1  Fetch v17  54 B → 1.2 kB  503.1 ms  topic orders  12 records

`Label` names the connection by its number and its endpoints. Secrets are not printed: trees come from
`ottla.explain.dissect`, which withholds them, and other messages have no secret fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import cache, lru_cache
from typing import Any, NamedTuple

from ottla import wire
from ottla.explain.as_json import body_json
from ottla.explain.dissect import Dissection, TopicLookup, dissect, dissect_message
from ottla.explain.exchanges import SASL_TOKEN, Exchange, Loss, Message, response_body_start
from ottla.explain.facts import Facts
from ottla.explain.guess import Verdict, Wrapping, guess_response
from ottla.explain.open_fields import OPENINGS
from ottla.explain.record_fields import has_records
from ottla.explain.redact import RULES, carries_secret
from ottla.explain.render.lines import Line, Styled, width_of
from ottla.explain.show_tree import tree_lines
from ottla.explain.values_text import count_text
from ottla.wire.fault import WireError
from ottla.wire.frames import frame as framed
from ottla.wire.index import MESSAGES
from ottla.wire.values import Json

__all__ = [
    "Label",
    "exchange_block",
    "exchange_json",
    "exchange_line",
    "fact_pieces",
    "loss_json",
    "loss_line",
    "message_json",
    "needs_care",
]

NAMES_SHOWN_MAX = 3
WIDE = 130
"""In terminals at least this wide, the parts of lines are aligned."""
GUESS_BYTES_MAX = 1024 * 1024
_NS = 1_000_000_000


class Label(NamedTuple):
    """A connection: its number, and the addresses of client and broker."""

    number: int
    client: str
    broker: str


# --- lines ------------------------------------------------------------------------------------------------------------


def exchange_line(exchange: Exchange, facts: Facts, label: Label, width: int) -> Line:
    """One exchange in one line, cut to the width; in a wide terminal its parts are aligned with other lines."""
    first = exchange.first
    latency = "" if exchange.latency_ns is None else latency_text(exchange.latency_ns)
    parts = [
        (_client_text(first), "type", 20),
        (_name_text(exchange), "name", 28),
        (_sizes_text(exchange), "number", 17),
    ]
    line = [Styled(f"{clock_text(first.at_ns)}  #{label.number:<{3 if width >= WIDE else 0}} ", "dim")]
    for text, style, column in parts:
        line += [Styled(text, style), Styled("  " + " " * (column - len(text) if width >= WIDE else 0))]
    if latency or width >= WIDE:
        line.append(Styled(f"{latency:>9}" if width >= WIDE else latency, "number"))
    line += fact_pieces(exchange, facts)
    return cut(line, width)


def _client_text(message: Message) -> str:
    return message.client_id if message.client_id else "(no client id)" if message.name else "(unknown)"


def _name_text(exchange: Exchange) -> str:
    first = exchange.first
    if first.name == SASL_TOKEN:
        return "SASL token"
    if not first.name:
        return "response without its request"
    return f"{first.api} v{first.version}"


def _sizes_text(exchange: Exchange) -> str:
    request = "?" if exchange.request is None else size_text(exchange.request.size_bytes)
    response = {"one-way": "no response expected", "unanswered": "no response"}.get(exchange.outcome, "?")
    if exchange.response is not None:
        response = size_text(exchange.response.size_bytes)
    return f"{request} → {response}"


def fact_pieces(exchange: Exchange, facts: Facts) -> Iterator[Styled]:
    """What an exchange was about and what became of it: errors, groups, topics, records."""
    for name, count in facts.errors.items():
        yield Styled(f"  {name}" if count == 1 else f"  {name} ×{count}", "removed")
    for message in (exchange.request, exchange.response):
        if message is not None and message.error is not None:
            yield Styled(f"  cannot be read: {message.error}", "warn")
    if exchange.outcome == "unpaired" and exchange.response is not None:
        yield Styled(f"  {guess_text(exchange.response)}", "dim")
    for noun, names in (("group", facts.groups), ("topic", facts.topics)):
        if names:
            yield Styled(f"  {noun} ", "dim")
            yield Styled(names_text(names), "string")
    if facts.record_count:
        yield Styled(f"  {count_text(facts.record_count, 'record')}", "dim")


def loss_line(loss: Loss, label: Label, width: int) -> Line:
    """Bytes that are missing, in one line."""
    words = []
    if loss.lost_bytes:
        words.append(f"{count_text(loss.lost_bytes, 'byte')} from the {loss.sender.value} are missing")
    if loss.passed_bytes:
        words.append(
            f"{count_text(loss.passed_bytes, 'byte')} from the {loss.sender.value} skipped, no complete message"
        )
    line = [
        Styled(clock_text(loss.at_ns), "dim"),
        Styled(f"  #{label.number} ", "dim"),
        Styled(", ".join(words), "warn"),
    ]
    return cut(line, width)


def clock_text(at_ns: int) -> str:
    """The time of day in UTC, to the millisecond."""
    seconds, rest = divmod(at_ns, _NS)
    return f"{datetime.fromtimestamp(seconds, UTC):%H:%M:%S}.{rest // 1_000_000:03}"


def moment_text(at_ns: int) -> str:
    """Date and time in UTC, to the microsecond."""
    seconds, rest = divmod(at_ns, _NS)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest // 1_000:06}Z"


def size_text(size_bytes: int) -> str:
    if size_bytes < 1_000:
        return f"{size_bytes} B"
    return f"{size_bytes / 1_000:.1f} kB" if size_bytes < 1_000_000 else f"{size_bytes / 1_000_000:.1f} MB"


def latency_text(latency_ns: int) -> str:
    return f"{latency_ns / 1_000_000:.1f} ms" if latency_ns < 10 * _NS else f"{latency_ns / _NS:.1f} s"


def names_text(names: Iterable[str]) -> str:
    listed = list(names)
    shown = ", ".join(listed[:NAMES_SHOWN_MAX])
    return shown if len(listed) <= NAMES_SHOWN_MAX else f"{shown} and {len(listed) - NAMES_SHOWN_MAX} more"


def cut(line: Line, width: int) -> Line:
    """The line, at most so wide."""
    if width_of(line) <= width:
        return line
    fitted: Line = []
    left = width - 1
    for text, style in line:
        fitted.append(Styled(text[:left], style))
        left -= len(text)
        if left <= 0:
            break
    return [*fitted, Styled("…", "dim")]


# --- blocks -----------------------------------------------------------------------------------------------------------


def exchange_block(
    exchange: Exchange, facts: Facts, label: Label, width: int, topic_names: TopicLookup
) -> Iterator[Line]:
    """The line, then the trees of request and response."""
    yield exchange_line(exchange, facts, label, width)
    if exchange.request is not None:
        yield from _message_lines(exchange.request, f"{label.client} → {label.broker}", width, topic_names)
    if exchange.response is not None:
        yield from _message_lines(exchange.response, f"{label.broker} → {label.client}", width, topic_names)
    yield []


def _message_lines(message: Message, ends: str, width: int, topic_names: TopicLookup) -> Iterator[Line]:
    words = [message.name or "Response", count_text(message.size_bytes, "byte"), moment_text(message.at_ns), ends]
    heading = f"  {', '.join(words)}"
    yield cut([Styled(heading, "heading")], width)
    if message.name == SASL_TOKEN:
        yield cut([Styled(f"    withheld ({len(message.frame.data)} bytes)", "warn")], width)
        return
    dissected = message_dissection(message, topic_names)
    if dissected is None:
        text = guess_text(message) if not message.name else "not shown: the message is not certain"
        yield cut([Styled(f"    {text}", "dim")], width)
        return
    data = framed(message.frame.data)
    yield from tree_lines(dissected.nodes, data, width, depth=1)
    if dissected.error is not None:
        yield cut([Styled(f"    incomplete: {dissected.error}", "warn")], width)


def message_dissection(message: Message, topic_names: TopicLookup) -> Dissection | None:
    """The dissected message; None if its type is unknown, or if it may hold a secret."""
    name, version = message.name, message.version
    if not name:
        if not message.frame.is_whole or message.size_bytes > GUESS_BYTES_MAX:
            return None
        verdict, is_safe = _judged(message)
        if verdict.best is None or not is_safe:
            return None
        name, version = verdict.best.name, verdict.best.version
    elif _is_doubtful(message) and _may_be_secret(message.frame.data):
        return None
    entry = MESSAGES.get(name)
    if entry is None or not entry.low <= version <= entry.high:
        return None
    before = "request header" if name.endswith("Request") else "response header"
    wrapping = Wrapping(has_size=True, before=before)  # type: ignore[arg-type]  # both are of the literal's words
    return dissect(framed(message.frame.data), name, version, wrapping, topic_names=topic_names)


def _is_doubtful(message: Message) -> bool:
    """Whether a complete response cannot be read as the one to its request: it may answer another request."""
    return message.error is not None and message.name.endswith("Response") and message.frame.is_whole


def _judged(message: Message) -> tuple[Verdict, bool]:
    """A guess at a response without its request, and whether it may be shown.

    If any message with a secret fits, nothing is shown, because the guess may be wrong.
    """
    data = message.frame.data
    return guess_response(data), not _may_be_secret(data)


@lru_cache(maxsize=4)
def _may_be_secret(data: bytes) -> bool:
    """Whether the content of a frame can be read as some response with a secret."""
    for name, version in _careful_responses():
        try:
            at = response_body_start(data, name, version)
        except WireError:
            continue
        root, error = dissect_message(name, version, data[at:])
        if error is None and carries_secret(root):
            return True
    return False


@cache
def _careful_responses() -> tuple[tuple[str, int], ...]:
    return tuple(
        (name, version)
        for name, entry in MESSAGES.items()
        if entry.kind == "response"
        for version in range(entry.low, entry.high + 1)
        if needs_care(name, version)
    )


def guess_text(message: Message) -> str:
    """The guess at a response without its request, in words."""
    if not message.frame.is_whole:
        return "incomplete, so not guessed"
    if message.size_bytes > GUESS_BYTES_MAX:
        return "too large to be guessed"
    verdict, is_safe = _judged(message)
    if verdict.best is None:
        return "matches no known response"
    names = [f"{found.name.removesuffix('Response')} {versions_text(found.versions)}" for found in verdict.candidates]
    some = names[0] if verdict.sureness >= 0.9 else " or ".join(names[:NAMES_SHOWN_MAX])
    return (
        f"{verdict.phrase}: {some}"
        if is_safe
        else f"{verdict.phrase}: {some}; withheld because it may contain a secret"
    )


def versions_text(versions: tuple[int, ...]) -> str:
    """ "v3", "v1 to v4", "v1, v4"."""
    if not versions:
        return ""
    low, high = min(versions), max(versions)
    if low == high:
        return f"v{low}"
    is_run = len(versions) == high - low + 1
    return f"v{low} to v{high}" if is_run else ", ".join(f"v{version}" for version in sorted(versions))


# --- JSON -------------------------------------------------------------------------------------------------------------


def exchange_json(
    exchange: Exchange, facts: Facts, label: Label, topic_names: TopicLookup, *, with_records: bool
) -> Iterator[dict[str, Any]]:
    """An object for each message of the exchange."""
    shared = {"groups": list(facts.groups), "topics": list(facts.topics)}
    for message in (exchange.request, exchange.response):
        if message is not None:
            found = message_json(message, label, topic_names, with_records=with_records) | shared
            if message is exchange.response:
                latency = exchange.latency_ns
                found["latency_ms"] = None if latency is None else latency / 1_000_000
                found["errors"] = dict(facts.errors)
            found["outcome"] = exchange.outcome
            yield found


def loss_json(loss: Loss, label: Label) -> dict[str, Any]:
    return _label_json(label, loss.at_ns) | {
        "kind": "loss",
        "sender": loss.sender.value,
        "lost_bytes": loss.lost_bytes,
        "passed_bytes": loss.passed_bytes,
    }


def _label_json(label: Label, at_ns: int) -> dict[str, Any]:
    return {"time": moment_text(at_ns), "connection": label.number, "client": label.client, "broker": label.broker}


def message_json(message: Message, label: Label, topic_names: TopicLookup, *, with_records: bool) -> dict[str, Any]:
    """One message as an object. Without `with_records` record batches have their headers only."""
    kind = "token" if message.name == SASL_TOKEN else "request" if message.name.endswith("Request") else "response"
    found = _label_json(label, message.at_ns) | {"kind": kind, "size_bytes": message.size_bytes}
    if kind == "token":
        return found
    found |= {
        "api": message.api or None,
        "version": message.version if message.name else None,
        "correlation_id": message.correlation_id,
        "client_id": message.client_id,
        "body": _body(message, topic_names, with_records=with_records),
    }
    if not message.name:
        found["guess"] = guess_text(message)
    if message.error is not None:
        found["error"] = error_json(message.error)
    return found


def error_json(error: WireError) -> dict[str, Json]:
    return {"path": error.path, "byte_offset": error.byte_offset, "reason": error.reason}


def _body(message: Message, topic_names: TopicLookup, *, with_records: bool) -> Any:
    if message.body is None:
        return None
    if not needs_care(message.name, message.version):
        return wire.to_json(message.body, message.version)
    data = message.frame.data[message.body_start :]
    root, _ = dissect_message(message.name, message.version, data, topic_names=topic_names, with_records=with_records)
    return body_json(root)


@cache
def needs_care(name: str, version: int) -> bool:
    """Whether the message may hold secrets, or fields to be opened."""
    return name in RULES or name in OPENINGS or has_records(name, version)
