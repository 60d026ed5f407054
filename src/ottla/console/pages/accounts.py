"""Users with SCRAM credentials, quotas and delegation tokens. No page has a secret: not even a token's HMAC."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import msgspec

from ottla.client import Client
from ottla.client.quotas import describe_quotas
from ottla.client.tokens import describe_tokens
from ottla.client.users import describe_users
from ottla.console.html.parts import Column, code, link, more, nothing, numbers, since, table
from ottla.console.html.security import not_shown, security_tabs
from ottla.console.page import Content, Page, PageContext, one_page
from ottla.console.page_parts import load_part
from ottla.draw.forms import moment
from ottla.draw.markup import Markup, joined
from ottla.health.phrases import duration, plural
from ottla.wire.errors import ErrorCode

USERS = "/security/users"
QUOTAS = "/security/quotas"
TOKENS = "/security/tokens"
R = TypeVar("R")
D = TypeVar("D", bound=msgspec.Struct)
PAGING = frozenset({"after", "limit"})
TOKEN_REASONS = {
    ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED: "delegation tokens are disabled; set "
    "delegation.token.secret.key on the nodes to enable them",
    ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: "listing tokens needs a login with a "
    "password or a certificate, not with a token",
}


async def _listed(
    context: PageContext,
    title: str,
    data_of: Callable[[list[R]], D],
    work: Callable[[Client], Awaitable[list[R]]],
    place_of: Callable[[R], str],
    needs: str,
    reasons: Mapping[ErrorCode, str] | None = None,
) -> Content[D]:
    """One page of rows that the cluster lists all at once."""
    what = title.lower()
    found = await load_part(context, what, (what,), work, needs=needs, reasons=reasons)
    shown, next_name = one_page(sorted(found.value or [], key=place_of), place_of, context)
    return Content(data_of(shown), title, found.sources, found.degraded, next=next_name)


def _rendered(content: Content[Any], context: PageContext, path: str, listing: Markup) -> Markup:
    shown = not_shown(content.title, content.degraded) or listing
    return joined([security_tabs(path), shown, more(content.next, path, context.query)])


# --- users ------------------------------------------------------------------------------------------------------------


class UserRow(msgspec.Struct, frozen=True):
    name: str
    mechanism: str
    iterations: int


class Users(msgspec.Struct, frozen=True):
    rows: list[UserRow]


async def load_users(context: PageContext) -> Content[Users]:
    async def work(client: Client) -> list[UserRow]:
        found = await describe_users(client)
        return [UserRow(name, *each) for name, mechanisms in found.items() for each in mechanisms.items()]

    return await _listed(
        context, "Users", Users, work, lambda row: f"{row.name} {row.mechanism}", "DESCRIBE on the cluster"
    )


def render_users(content: Content[Users], context: PageContext) -> Markup:
    return _rendered(content, context, USERS, _user_table(content.data.rows))


def _user_table(rows: list[UserRow]) -> Markup:
    if not rows:
        return nothing("No SCRAM users. Add one:", "ottla users set ann")
    columns = (Column("user"), Column("mechanism"), *numbers("iterations"), Column("ACLs"))
    cells = [(each.name, each.mechanism, each.iterations,
              link("show", "security", "acls", principal=f"User:{each.name}")) for each in rows]  # fmt: skip
    return table("SCRAM users", columns, cells)


# --- quotas -----------------------------------------------------------------------------------------------------------


class QuotaRow(msgspec.Struct, frozen=True):
    entity: dict[str, str | None]
    """Kind -> name; null is the default of the kind."""
    who: str
    key: str
    value: float


class Quotas(msgspec.Struct, frozen=True):
    rows: list[QuotaRow]


async def load_quotas(context: PageContext) -> Content[Quotas]:
    async def work(client: Client) -> list[QuotaRow]:
        found = await describe_quotas(client)
        return [QuotaRow(each.entity, each.who, *value) for each in found for value in each.values.items()]

    return await _listed(
        context, "Quotas", Quotas, work, lambda row: f"{row.who} {row.key}", "DESCRIBE_CONFIGS on the cluster"
    )


def render_quotas(content: Content[Quotas], context: PageContext) -> Markup:
    return _rendered(content, context, QUOTAS, _quota_table(content.data.rows))


def _quota_table(rows: list[QuotaRow]) -> Markup:
    if not rows:
        return nothing("No quotas. Set one:", "ottla configs set user ann consumer_byte_rate=1048576")
    columns = (Column("who"), Column("quota"), *numbers("value"))
    return table("Quotas", columns, [(each.who, code(each.key), f"{each.value:,.15g}") for each in rows])


# --- tokens -----------------------------------------------------------------------------------------------------------


class TokenRow(msgspec.Struct, frozen=True):
    id: str
    owner: str
    requester: str
    renewers: list[str]
    issued_ms: int
    expires_ms: int
    ends_ms: int
    """After this it cannot be renewed."""


class Tokens(msgspec.Struct, frozen=True):
    rows: list[TokenRow]


async def load_tokens(context: PageContext) -> Content[Tokens]:
    async def work(client: Client) -> list[TokenRow]:
        return [
            TokenRow(each.token_id, each.owner, each.requester, list(each.renewers), each.issued_at_ms,
                     each.expires_at_ms, each.ends_at_ms)
            for each in await describe_tokens(client)
        ]  # fmt: skip

    needs = "DESCRIBE_TOKENS on their owners"
    return await _listed(context, "Tokens", Tokens, work, lambda row: f"{row.owner} {row.id}", needs, TOKEN_REASONS)


def render_tokens(content: Content[Tokens], context: PageContext) -> Markup:
    return _rendered(content, context, TOKENS, _token_table(content.data.rows, context.now_ms))


def _token_table(rows: list[TokenRow], now_ms: int) -> Markup:
    if not rows:
        return nothing("No tokens are visible to you. Create one:", "ottla tokens create --lifetime 12h")
    columns = (
        *map(Column, ("token", "owner", "renewers")),
        Column("issued", is_detail=True),
        Column("expires"),
        Column("ends"),
    )
    cells = [
        (code(each.id), each.owner, ", ".join(each.renewers) or "owner only", since(each.issued_ms, now_ms),
         _until(each.expires_ms, now_ms), _until(each.ends_ms, now_ms))
        for each in rows
    ]  # fmt: skip
    return table(plural(len(rows), "token"), columns, cells)


def _until(at_ms: int, now_ms: int) -> Markup:
    return joined([moment(at_ms), f" (in {duration(at_ms - now_ms)})" if at_ms > now_ms else " (over)"])


USERS_PAGE = Page("users", USERS, Users, load_users, render_users, query=PAGING, section="security")
QUOTAS_PAGE = Page("quotas", QUOTAS, Quotas, load_quotas, render_quotas, query=PAGING, section="security")
TOKENS_PAGE = Page("tokens", TOKENS, Tokens, load_tokens, render_tokens, query=PAGING, section="security")
