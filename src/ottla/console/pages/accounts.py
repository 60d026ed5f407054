"""Users with SCRAM credentials, quotas and delegation tokens. No page has a secret: not even a token's HMAC."""

from __future__ import annotations

import msgspec

from ottla.client import Client
from ottla.client.quotas import describe_quotas
from ottla.client.tokens import describe_tokens
from ottla.client.users import describe_users
from ottla.console.asking import ask_part
from ottla.console.html.parts import Column, code, link, more, nothing, numbers, since, table
from ottla.console.html.security import not_shown, security_tabs
from ottla.console.page import Content, Page, PageContext, one_page
from ottla.draw.forms import moment
from ottla.draw.markup import Markup, joined
from ottla.health.phrases import duration, plural
from ottla.wire.errors import ErrorCode

USERS = "/security/users"
QUOTAS = "/security/quotas"
TOKENS = "/security/tokens"
PAGING = frozenset({"after", "limit"})
TOKEN_REASONS = {
    ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED: "delegation tokens are disabled; set "
    "delegation.token.secret.key on the nodes to enable them",
    ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: "listing tokens needs a login with a "
    "password or a certificate, not with a token",
}


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

    found = await ask_part(context, "users", ("users",), work, needs="DESCRIBE on the cluster")
    rows = sorted(found.value or [], key=_user_place)
    shown, next_name = one_page(rows, _user_place, context)
    return Content(Users(shown), "Users", found.sources, found.degraded, next=next_name)


def _user_place(row: UserRow) -> str:
    return f"{row.name} {row.mechanism}"


def render_users(content: Content[Users], _: PageContext) -> Markup:
    shown = not_shown("Users", content.degraded) or _user_table(content.data.rows)
    return joined([security_tabs(USERS), shown, more(content.next, USERS, {})])


def _user_table(rows: list[UserRow]) -> Markup:
    if not rows:
        return nothing("No SCRAM users. Add one:", "ottla users set ann")
    columns = (Column("user"), Column("mechanism"), *numbers("iterations"), Column("rules"))
    cells = [(each.name, each.mechanism, each.iterations,
              link("ACLs", "security", "acls", principal=f"User:{each.name}")) for each in rows]  # fmt: skip
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

    found = await ask_part(context, "quotas", ("quotas",), work, needs="DESCRIBE_CONFIGS on the cluster")
    shown, next_name = one_page(sorted(found.value or [], key=_quota_place), _quota_place, context)
    return Content(Quotas(shown), "Quotas", found.sources, found.degraded, next=next_name)


def _quota_place(row: QuotaRow) -> str:
    return f"{row.who} {row.key}"


def render_quotas(content: Content[Quotas], _: PageContext) -> Markup:
    shown = not_shown("Quotas", content.degraded) or _quota_table(content.data.rows)
    return joined([security_tabs(QUOTAS), shown, more(content.next, QUOTAS, {})])


def _quota_table(rows: list[QuotaRow]) -> Markup:
    if not rows:
        return nothing("No quotas. Set one:", "ottla configs set user ann consumer_byte_rate=1048576")
    columns = (Column("who"), Column("quota"), *numbers("value"))
    return table("Quotas", columns, [(each.who, code(each.key), each.value) for each in rows])


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

    found = await ask_part(
        context, "tokens", ("tokens",), work, needs="DESCRIBE_TOKENS on their owners", reasons=TOKEN_REASONS
    )
    shown, next_name = one_page(sorted(found.value or [], key=_token_place), _token_place, context)
    return Content(Tokens(shown), "Tokens", found.sources, found.degraded, next=next_name)


def _token_place(row: TokenRow) -> str:
    return f"{row.owner} {row.id}"


def render_tokens(content: Content[Tokens], context: PageContext) -> Markup:
    shown = not_shown("Tokens", content.degraded) or _token_table(content.data.rows, context.now_ms)
    return joined([security_tabs(TOKENS), shown, more(content.next, TOKENS, {})])


def _token_table(rows: list[TokenRow], now_ms: int) -> Markup:
    if not rows:
        return nothing("No tokens are visible to you. Create one:", "ottla tokens create --lifetime 12h")
    columns = tuple(map(Column, ("token", "owner", "renewers", "issued", "expires", "ends")))
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
