"""Access control lists: who may do what, by principal or by resource."""

from __future__ import annotations

import msgspec

from ottla.client import Client, acls
from ottla.client.acls import Acl, AclFilter, PatternType, ResourceType, full_principal
from ottla.console.html.navigation import Text, filter_form
from ottla.console.html.parts import Column, badge, link, more, nothing, table
from ottla.console.html.security import not_shown, security_tabs
from ottla.console.page import BadQueryError, Content, Page, PageContext, one_page
from ottla.console.page_parts import load_part
from ottla.draw.markup import Markup, element, joined
from ottla.health.phrases import plural
from ottla.wire.access import label
from ottla.wire.errors import ErrorCode

PATH = "/security/acls"
NEEDS = "DESCRIBE on the cluster"
RESOURCES = {label(each): each for each in ResourceType if each is not ResourceType.ANY}
REASONS = {
    ErrorCode.SECURITY_DISABLED: "this cluster has no authorizer, so everything is allowed; "
    "set authorizer.class.name on its nodes to enable one"
}
FIELDS = (Text("principal", "Principal", "User:ann"), Text("resource", "Resource", "topic or topic:orders"))


class AclRow(msgspec.Struct, frozen=True):
    resource_type: str
    resource: str
    pattern: str
    principal: str
    host: str
    op: str
    permission: str


class Acls(msgspec.Struct, frozen=True):
    rows: list[AclRow]


def parse_filter(principal: str, resource: str) -> AclFilter:
    """`ann` or `User:ann`; `topic` for the rules of all topics, `topic:orders` for those that concern one."""
    wanted = AclFilter(principal=full_principal(principal) if principal else None)
    if not resource:
        return wanted
    kind, colon, name = resource.partition(":")
    if kind not in RESOURCES:
        known = ", ".join(RESOURCES)
        raise BadQueryError(f"resource={resource} is not TYPE or TYPE:NAME; the types are {known}")
    wanted = wanted._replace(resource_type=RESOURCES[kind])
    return wanted._replace(resource_name=name, pattern_type=PatternType.MATCH) if colon else wanted


async def load(context: PageContext) -> Content[Acls]:
    wanted = parse_filter(context.query.get("principal", ""), context.query.get("resource", ""))

    async def work(client: Client) -> list[AclRow]:
        return [_row(each) for each in sorted(await acls.describe(client, wanted), key=lambda acl: acl.place)]

    found = await load_part(context, "ACLs", ("acls", *wanted), work, needs=NEEDS, reasons=REASONS)
    shown, next_name = one_page(sorted(found.value or [], key=_place), _place, context)
    return Content(Acls(shown), "ACLs", found.sources, found.degraded, next=next_name)


def _row(acl: Acl) -> AclRow:
    return AclRow(
        resource_type=label(acl.resource_type),
        resource=acl.resource_name,
        pattern=label(acl.pattern_type),
        principal=acl.principal,
        host=acl.host,
        op=label(acl.operation),
        permission=label(acl.permission),
    )


def _place(row: AclRow) -> str:
    return " ".join((row.resource_type, row.resource, row.pattern, row.permission, row.principal, row.op, row.host))


def render(content: Content[Acls], context: PageContext) -> Markup:
    query = dict(context.query)
    shown = not_shown("ACLs", content.degraded) or joined(
        [filter_form(PATH, FIELDS, query), _table(content.data.rows, query), more(content.next, PATH, query)]
    )
    return joined([security_tabs(PATH), shown])


def _table(rows: list[AclRow], query: dict[str, str]) -> Markup:
    if not rows:
        example = "ottla acls add --topic orders --principal ann --operation read"
        return nothing("No ACL matches." if query else "No ACLs. Add one:", "" if query else example)
    titles = ("resource", "pattern", "permission", "operation", "principal")
    columns = (*map(Column, titles), Column("host", is_detail=True))
    note = element("p", "Deny takes precedence over allow. READ, WRITE, DELETE and ALTER imply DESCRIBE.",
                   class_="note")  # fmt: skip
    return joined([table(plural(len(rows), "rule"), columns, map(_cells, rows)), note])


def _cells(row: AclRow) -> tuple[Markup | str, ...]:
    tone = "light critical" if row.permission == "deny" else "light"
    about = f"{row.resource_type}:{row.resource}"
    return (
        link(about, "security", "acls", resource=about),
        row.pattern,
        badge(row.permission, tone),
        row.op,
        link(row.principal, "security", "acls", principal=row.principal),
        "all" if row.host == "*" else row.host,
    )


PAGE = Page(
    "acls", PATH, Acls, load, render,
    query=frozenset({"principal", "resource", "after", "limit"}), section="security",
)  # fmt: skip
