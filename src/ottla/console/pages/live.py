"""Live traffic: what clients ask the brokers and what they are answered, decoded, as it passes.

Only brokers of ottla tell, and only those who may alter the cluster. Secrets and records never leave the broker.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Final

import msgspec

from ottla.client import ClientError
from ottla.client.inspect_listener import inspect_listeners
from ottla.console.addresses import href
from ottla.console.html.navigation import Choice, Text, filter_form
from ottla.console.html.parts import Cell, Column, badge, byte_size, node_link, nothing, table, with_query
from ottla.console.html.records import hex_dump
from ottla.console.page import BadQueryError, Content, Degraded, Page, PageContext, why_not
from ottla.console.page_parts import load_part
from ottla.console.traffic import LiveFrame, NodeTraffic, TrafficFilter
from ottla.draw.forms import moment
from ottla.draw.markup import NOTHING, Markup, element, joined
from ottla.explain.filters import UnknownApi, api_named
from ottla.health.phrases import number, plural, size

PATH: Final = "/live"
TITLE: Final = "Live traffic"
LIMIT_DEFAULT: Final = 100
LIMIT_MAX: Final = 1_000
TREE_CHARS_MAX: Final = 20_000
ENABLE: Final = "ottla.inspect.traffic.enable=true"
NEEDS: Final = (
    f"needs brokers of ottla with an inspect listener and {ENABLE}, as 'ottla serve --console-port 8080' and "
    "'ottla cluster up --console' have them; Apache Kafka does not tell"
)
ABOUT: Final = (
    "Requests of clients and the responses to them, as they pass. The broker withholds passwords, keys and tokens, and "
    "leaves records out: only the headers of their batches are shown. To read records, open their topic."
)


class Live(msgspec.Struct, frozen=True):
    frames: list[LiveFrame]
    """The newest first."""
    nodes: list[NodeTraffic]
    seen_per_s: int
    shown_per_s: int
    dropped: int
    since_ms: int | None
    """When the console began to watch; frames before that are not known."""


async def load(context: PageContext) -> Content[Live]:
    wanted = _wanted(context)
    limit = context.number("limit", LIMIT_DEFAULT, 1, LIMIT_MAX)
    part = await load_part(context, "traffic", ("inspect-listeners",), inspect_listeners)
    listeners = part.value or {}
    told = {node: address for node, address in listeners.items() if isinstance(address, str)}
    if not told:
        return Content(_empty(), TITLE, part.sources, part.degraded or [_no_listener(listeners, context)])
    tap = context.watcher.traffic.look(context.watcher.client, told, wanted)
    await tap.ready()
    nodes = [tap.nodes.get(each) or NodeTraffic(each, why_not="does not answer yet") for each in told]
    data = Live(
        frames=tap.newest(limit),
        nodes=nodes,
        seen_per_s=sum(each.seen_per_s for each in nodes),
        shown_per_s=sum(each.shown_per_s for each in nodes),
        dropped=sum(each.dropped for each in nodes),
        since_ms=tap.since_ms,
    )
    missing = [Degraded(f"node {each.node}", each.why_not) for each in nodes if each.why_not is not None]
    silent = [Degraded(f"node {node}", f"needs an inspect listener and {ENABLE}") for node in listeners.keys() - told]
    return Content(data, TITLE, part.sources, [*missing, *silent], live=("frame",))


def _empty() -> Live:
    return Live([], [], 0, 0, 0, None)


def _no_listener(listeners: Mapping[int, str | ClientError | None], context: PageContext) -> Degraded:
    """Why no broker says where its traffic is seen."""
    for outcome in listeners.values():
        if isinstance(outcome, ClientError):
            return Degraded("traffic", why_not(outcome, context.watcher.principal, "DESCRIBE_CONFIGS on the cluster"))
    return Degraded("traffic", NEEDS)


def _wanted(context: PageContext) -> TrafficFilter:
    api = context.query.get("api", "").strip()
    try:
        api = api_named(api) if api else ""
    except UnknownApi as error:
        raise BadQueryError(f"{error}; the nearest is {error.nearest}") from None
    is_errors = context.choice("errors", ("0", "1")) == "1"
    return TrafficFilter(context.query.get("client", "").strip(), api, is_errors)


# --- the page ---------------------------------------------------------------------------------------------------------

FIELDS: Final = (
    Text("client", "Client id", "worker-*", 18),
    Text("api", "API", "ShareFetch", 18, "text"),
    Choice("errors", "Frames", {"": "all", "1": "errors only"}),
)
COLUMNS: Final = (
    Column("time (UTC)"),
    Column("message"),
    Column("client"),
    Column("node", is_detail=True),
    Column("size", is_number=True, is_detail=True),
    Column("took", is_number=True, about="from the request to its response"),
    Column("about"),
)
ARROWS: Final = {"req": "→", "resp": "←"}
MESSAGES: Final = {"req": "request", "resp": "response"}


def render(content: Content[Live], context: PageContext) -> Markup:
    data = content.data
    parts = [element("p", ABOUT, class_="lead")]
    if data.since_ms is None:
        why = content.degraded[0].why if content.degraded else ""
        return joined([*parts, element("p", f"Nothing can be shown: {why}.", class_="outage")])
    parts += [filter_form(PATH, FIELDS, context.query), _summary(data, context)]
    parts += [
        element("p", f"Node {each.node}: {each.why_not}.", class_="outage") for each in data.nodes if each.why_not
    ]
    if data.frames:
        note = "the newest first; while one is open the page stands still"
        parts.append(table("Frames", COLUMNS, (list(_cells(each)) for each in data.frames), note))
    elif not all(each.why_not for each in data.nodes):
        is_narrowed = any(context.query.get(each.name) for each in FIELDS)
        parts.append(nothing("No frame has matched yet." if is_narrowed else "No frame has passed yet."))
    return joined(parts)


def _summary(data: Live, context: PageContext) -> Markup:
    samples = [f"node {each.node} shows one exchange in {each.one_in}" for each in data.nodes if each.one_in > 1]
    rates = f"{number(data.shown_per_s)}/s shown, {number(data.seen_per_s)}/s seen, {number(data.dropped)} dropped"
    text = "; ".join([rates, *samples])
    return element(
        "p",
        f"{text}. Watched since ",
        moment(data.since_ms),
        ". ",
        element("a", "Reload", href=with_query(PATH, **context.query)),
        class_="note",
    )


def _cells(frame: LiveFrame) -> Iterator[Cell]:
    yield _time(frame.at_us)
    page = href("wire", "api", frame.api, f"{MESSAGES[frame.dir]}-v{frame.version}")
    arrow = element("span", ARROWS[frame.dir], title=MESSAGES[frame.dir], role="img", aria_label=MESSAGES[frame.dir])
    name = element("a", f"{frame.api} v{frame.version}", href=page)
    yield element("span", arrow, " ", name, f" #{frame.corr}", class_="message")
    client = element("span", frame.client_id or "(no client id)", title=f"{frame.conn} on {frame.listener}")
    yield joined([client, " ", element("small", frame.principal, class_="principal")])
    yield node_link(frame.node)
    yield byte_size(frame.bytes)
    yield " " if frame.ms is None else f"{frame.ms:,.1f} ms"
    about = element("p", badge(frame.error, "critical") if frame.error else NOTHING, " ", _about(frame))
    yield element("div", about, _content(frame))


def _time(at_us: int) -> Markup:
    seconds, rest = divmod(at_us, 1_000_000)
    exact = f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:06}Z"
    return element("time", exact[11:26], datetime=exact, title=exact)


def _about(frame: LiveFrame) -> str:
    left_out = f"{size(frame.record_bytes_left_out)} of records left out" if frame.record_bytes_left_out else ""
    return " · ".join(filter(None, [frame.text, left_out]))


def _content(frame: LiveFrame) -> Markup:
    name = f"{frame.api}{MESSAGES[frame.dir].capitalize()}"
    if frame.json is None:
        return element("small", frame.left_out or "not decoded")
    text = msgspec.json.format(msgspec.json.encode(frame.json), indent=2).decode()
    cut = f"\n… {plural(len(text) - TREE_CHARS_MAX, 'more character')}" if len(text) > TREE_CHARS_MAX else ""
    tree = element(
        "pre",
        text[:TREE_CHARS_MAX] + cut,
        class_="dump",
        tabindex="0",
        role="region",
        aria_label=f"{name} #{frame.corr}",
    )
    return element("details", element("summary", "open"), tree, _bytes(frame, name), class_="frame")


def _bytes(frame: LiveFrame, name: str) -> Markup:
    if frame.hex == "":
        return element("small", "It has no bytes: a header is all of it.")
    if frame.hex is None:
        return element("small", "Its bytes are not shown: it is large, or of a kind that may hold secrets or records.")
    fields = {"bytes": frame.hex, "name": name}
    kept = [element("input", type="hidden", name=each, value=text) for each, text in fields.items()]
    button = element("button", "Field by field", type="submit", class_="plain")
    form = element("form", *kept, button, method="post", action="/wire/decode", class_="inline")
    return joined([hex_dump(bytes.fromhex(frame.hex), f"Bytes of {name} #{frame.corr}"), form])


PAGE: Final = Page("live", PATH, Live, load, render, frozenset({"client", "api", "errors", "limit"}), section="live")
