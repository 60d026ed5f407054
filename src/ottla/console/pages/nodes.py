"""The nodes: brokers and controllers, what each leads and keeps, its disks, and how it is configured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from ottla.client import Client
from ottla.client.cluster import describe_quorum
from ottla.client.configs import Resource, ResourceType, describe
from ottla.console.html.configs import Config, config_tables, configs_of
from ottla.console.html.findings import finding_cards, finding_line
from ottla.console.html.navigation import Choice, Text, every_one_of, filter_form
from ottla.console.html.parts import (
    Column,
    byte_size,
    code,
    facts,
    link,
    more,
    node_link,
    nothing,
    numbers,
    section,
    table,
)
from ottla.console.page import Content, Degraded, NotFoundError, Page, PageContext, one_page
from ottla.console.page_parts import Part, load_part
from ottla.draw.forms import percent
from ottla.draw.markup import NOTHING, Markup, element, joined
from ottla.health import Finding
from ottla.health.facts import Broker, LogDir
from ottla.observe.cluster_state import ClusterState

KINDS = ("cluster", "topic", "quorum", "log_dirs")
ROLES = ("broker", "controller")
CONFIGS_NEED = "DESCRIBE_CONFIGS on the cluster"
QUORUM_NEEDS = "DESCRIBE on the cluster"
FIELDS = (Choice("role", "Role", every_one_of(ROLES)), Text("q", "Id, host or rack contains"))


class Listener(msgspec.Struct, frozen=True):
    name: str
    host: str
    port: int


class LogDirectory(msgspec.Struct, frozen=True):
    path: str
    error: str | None
    size_bytes: int | None
    usable_bytes: int | None
    total_bytes: int | None


class NodeRow(msgspec.Struct, frozen=True):
    id: int
    roles: list[str]
    leads_quorum: bool
    is_listed: bool
    """Whether the cluster lists it; replicas may be on nodes that it does not."""
    host: str | None
    port: int | None
    rack: str | None
    fenced: bool | None
    reachable: bool | None
    error: str | None
    led: int
    replicas: int
    log_dirs: list[LogDirectory]
    findings: list[str]
    """The rules that have an open finding about it."""


class Nodes(msgspec.Struct, frozen=True):
    rows: list[NodeRow]


class NodeData(msgspec.Struct, frozen=True):
    node: NodeRow
    listeners: list[Listener]
    configs: list[Config]
    findings: list[Finding]


# --- what is known of nodes -------------------------------------------------------------------------------------------


def node_rows(state: ClusterState) -> list[NodeRow]:
    """Brokers, controllers, and nodes that only replicas name, by id."""
    brokers = {} if state.cluster is None else {each.id: each for each in state.cluster.fact.brokers}
    partitions = [each for seen in state.topics.values() for each in seen.fact.partitions]
    led = Counter(each.leader for each in partitions)
    kept = Counter(node for each in partitions for node in each.replicas)
    quorum = () if state.quorum is None else state.quorum.fact.replicas
    voters = {each.id for each in quorum if each.role == "voter"}
    ids = {*brokers, *kept, *(each.id for each in quorum)}
    leader = None if state.quorum is None else state.quorum.fact.leader
    return [
        _row(
            each,
            brokers.get(each),
            _roles(is_broker=each in brokers or each in kept, is_voter=each in voters),
            leads_quorum=each == leader,
            led=led[each],
            replicas=kept[each],
            state=state,
        )
        for each in sorted(ids)
    ]


def _roles(*, is_broker: bool, is_voter: bool) -> list[str]:
    """Whoever follows the metadata log without being a broker is a controller."""
    return ["broker"] * is_broker + ["controller"] * (is_voter or not is_broker)


def _row(
    node_id: int,
    broker: Broker | None,
    roles: list[str],
    *,
    leads_quorum: bool,
    led: int,
    replicas: int,
    state: ClusterState,
) -> NodeRow:
    known = broker or Broker(id=node_id)
    return NodeRow(
        id=node_id,
        roles=roles,
        leads_quorum=leads_quorum,
        is_listed=broker is not None,
        host=known.host or None,
        port=known.port or None,
        rack=known.rack,
        fenced=known.fenced,
        reachable=known.reachable,
        error=known.error,
        led=led,
        replicas=replicas,
        log_dirs=[_log_dir(each.fact) for each in state.log_dirs() if each.fact.node == node_id],
        findings=[each.rule for each in findings_of(node_id, state.findings) if each.is_open],
    )


def _log_dir(fact: LogDir) -> LogDirectory:
    return LogDirectory(fact.path, fact.error, None if fact.error else fact.size, fact.usable, fact.total)


def findings_of(node_id: int, findings: Iterable[Finding]) -> list[Finding]:
    """Findings about a node and about its log directories, which are named `node:path`."""
    name, prefix = str(node_id), f"{node_id}:"
    return [
        each
        for each in findings
        if (each.subject.kind == "node" and each.subject.name == name)
        or (each.subject.kind == "log-dir" and each.subject.name.startswith(prefix))
    ]


def parse_listeners(text: str) -> list[Listener]:
    """`PLAINTEXT://host:9092,CONTROLLER://:9093`; an empty host stands for all addresses of the node."""
    found = []
    for each in filter(None, (part.strip() for part in text.split(","))):
        name, _, place = each.partition("://")
        host, _, port = place.rpartition(":")
        if port.isdigit():
            found.append(Listener(name, host.strip("[]"), int(port)))
    return found


# --- the list ---------------------------------------------------------------------------------------------------------


async def load(context: PageContext) -> Content[Nodes]:
    role, text = context.choice("role", ROLES), context.query.get("q", "").casefold()
    rows = [
        each
        for each in node_rows(context.watcher.state)
        if (not role or role in each.roles) and text in f"{each.id}\n{each.host}\n{each.rack}".casefold()
    ]
    shown, next_name = one_page(rows, _place, context)
    return Content(
        Nodes(shown), "Nodes", context.sources(*KINDS), context.hidden(*KINDS),
        live=("cluster", "topic", "quorum", "log_dirs", "finding"), next=next_name,
    )  # fmt: skip


def _place(row: NodeRow) -> str:
    return f"{row.id:010}"


def render(content: Content[Nodes], context: PageContext) -> Markup:
    rows, query = content.data.rows, dict(context.query)
    columns = (
        Column("node", is_named=True), Column("roles"), Column("address", is_short=True, is_detail=True),
        Column("rack", is_optional=True, is_detail=True), Column("state"),
        *numbers("leads", "replicas", "logs", are_details=True), *numbers("disk free"), Column("findings"),
    )  # fmt: skip
    open_findings = [each for each in context.watcher.state.findings if each.is_open]
    shown = (
        table("Nodes", columns, [_cells(each, open_findings) for each in rows])
        if rows
        else nothing("No nodes match." if query else "No nodes observed yet.")
    )
    also = element("p", link("Features of the cluster", "features"), class_="note")
    return joined([filter_form("/nodes", FIELDS, query), shown, more(content.next, "/nodes", query), also])


def _cells(row: NodeRow, findings: list[Finding]) -> tuple[Markup | str | int | None, ...]:
    sizes = [each.size_bytes for each in row.log_dirs if each.size_bytes is not None]
    left = [each.usable_bytes for each in row.log_dirs if each.usable_bytes is not None]
    return (
        node_link(row.id),
        _role_words(row),
        _address(row),
        row.rack,
        state_words(row),
        row.led,
        row.replicas,
        byte_size(sum(sizes) if sizes else None),
        byte_size(min(left) if left else None),
        finding_line(findings_of(row.id, findings)),
    )


def _role_words(row: NodeRow) -> str:
    return ", ".join(row.roles) + (" (leads the quorum)" if row.leads_quorum else "")


def _address(row: NodeRow) -> Markup | None:
    return None if row.host is None else code(f"{row.host}:{row.port}")


def state_words(row: NodeRow) -> str | None:
    """Whether a node serves, in words."""
    if not row.is_listed:
        return "not listed by the cluster" if "broker" in row.roles else None
    if row.fenced:
        return "▲ fenced" + ("" if row.reachable else f": {row.error or 'unreachable'}")
    if row.reachable is False:
        return f"▲ unreachable: {row.error or 'reason unknown'}"
    return "serves" if row.reachable else None


# --- one node ---------------------------------------------------------------------------------------------------------


async def load_node(context: PageContext) -> Content[NodeData]:
    rows = {str(each.id): each for each in node_rows(context.watcher.state)}
    row = rows.get(context.names["node"])
    if row is None:
        raise NotFoundError("node", context.names["node"], rows)
    configs = await _configs(context, row)
    endpoints = await _endpoints(context, row)
    entries = configs.value or []
    data = NodeData(
        node=row,
        listeners=_listeners(entries, endpoints.value or []),
        configs=entries,
        findings=findings_of(row.id, context.watcher.state.findings),
    )
    return Content(
        data,
        f"Node {row.id}",
        [*context.sources(*KINDS), *configs.sources, *endpoints.sources],
        [*context.hidden(*KINDS), *configs.degraded, *endpoints.degraded],
        live=("cluster", "topic", "quorum", "log_dirs", f"node:{row.id}"),
    )


async def _configs(context: PageContext, row: NodeRow) -> Part[list[Config]]:
    if not row.is_listed:
        return Part(None, [], [Degraded("configs", "only available for brokers that the cluster lists")])
    if row.reachable is False:
        return Part(None, [], [Degraded("configs", f"node {row.id} is unreachable: {row.error}")])
    resource = Resource(ResourceType.BROKER, str(row.id))

    async def work(client: Client) -> list[Config]:
        entries = await describe(client, resource, synonyms=True, documentation=True)
        return configs_of(entries.values())

    return await load_part(context, "configs", ("configs", *resource), work, needs=CONFIGS_NEED)


async def _endpoints(context: PageContext, row: NodeRow) -> Part[list[Listener]]:
    """Where controllers are reached, only the quorum tells."""
    if "controller" not in row.roles:
        return Part(None, [], [])
    found = await load_part(context, "endpoints", ("quorum",), describe_quorum, needs=QUORUM_NEEDS)
    voters = () if found.value is None else found.value.voters
    listeners = [Listener(*place) for each in voters if each.node_id == row.id for place in each.endpoints]
    return Part(listeners, found.sources, found.degraded)


def _listeners(configs: list[Config], endpoints: list[Listener]) -> list[Listener]:
    """Those of its configs; where the quorum knows the address, that one."""
    values = {each.name: each.value for each in configs}
    configured = parse_listeners(values.get("advertised.listeners") or values.get("listeners") or "")
    return list({each.name: each for each in (*configured, *endpoints)}.values())


def render_node(content: Content[NodeData], context: PageContext) -> Markup:
    data, row = content.data, content.data.node
    return joined(
        [
            _about(row),
            section("Findings", finding_cards(data.findings, context.now_ms)) if data.findings else NOTHING,
            section("Log directories", _directories(row)),
            section("Listeners", _listener_table(data.listeners)),
            section("Configs", _config_part(content)),
        ]
    )


def _about(row: NodeRow) -> Markup:
    return facts(
        {
            "state": state_words(row),
            "roles": _role_words(row),
            "address": _address(row),
            "rack": row.rack,
            "partitions led": row.led,
            "replicas": row.replicas,
        }
    )


def _directories(row: NodeRow) -> Markup:
    if not row.log_dirs:
        return nothing("No data on log directories.")
    columns = (
        Column("directory"), *numbers("logs", "free"), *numbers("size of the disk", are_details=True),
        *numbers("free share"), Column("state"),
    )  # fmt: skip
    return table("Log directories", columns, [_directory(each) for each in row.log_dirs])


def _directory(each: LogDirectory) -> tuple[Markup | str | None, ...]:
    left = None if not each.total_bytes or each.usable_bytes is None else 100 * each.usable_bytes / each.total_bytes
    return (
        code(each.path),
        byte_size(each.size_bytes),
        byte_size(each.usable_bytes),
        byte_size(each.total_bytes),
        percent(left),
        f"▲ failed: {each.error}" if each.error else "in use",
    )


def _listener_table(listeners: list[Listener]) -> Markup:
    if not listeners:
        return nothing("Listeners unknown.")
    rows = [
        (code(each.name), each.host or "all addresses", str(each.port) if each.port else "any free port")
        for each in listeners
    ]
    return table("Listeners", (Column("listener"), Column("host"), Column("port")), rows)


def _config_part(content: Content[NodeData]) -> Markup:
    why = next((each.why for each in content.degraded if each.what == "configs"), None)
    if not content.data.configs:
        return nothing(f"The configs cannot be shown: {why}." if why else "None.")
    return config_tables(content.data.configs, f"node {content.data.node.id}")


PAGE = Page("nodes", "/nodes", Nodes, load, render, query=frozenset({"role", "q", "after", "limit"}), section="nodes")
NODE_PAGE = Page("node", "/nodes/{node}", NodeData, load_node, render_node, section="nodes")
