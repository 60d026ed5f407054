"""`ottla tokens`: delegation tokens, with which others log in as their owner, on any cluster."""

from __future__ import annotations

from base64 import b64decode
from typing import TYPE_CHECKING, Any

import click

from ottla.cli.cluster import (
    ClusterGroup,
    Column,
    Target,
    help_alone,
    json_option,
    on_cluster,
    print_json,
    print_table,
    target_options,
)
from ottla.cli.failure import Failure
from ottla.cli.times import parse_duration_ms
from ottla.health.phrases import clock

if TYPE_CHECKING:
    from ottla.client.tokens import DelegationToken

COLUMNS = (Column("TOKEN"), Column("OWNER"), Column("RENEWERS"), Column("ISSUED"), Column("EXPIRES"), Column("ENDS"))

hmac_argument = click.argument("hmac_text", metavar="HMAC")


@click.group(cls=ClusterGroup, invoke_without_command=True)
@click.pass_context
def tokens(context: click.Context) -> None:
    """Create, list, renew and expire delegation tokens, on any cluster.

    The HMAC of a token authenticates as its owner, with SCRAM: the token id is the user name, the HMAC is the password,
    and the JAAS config has tokenauth=true. These commands need a connection that is authenticated without a token.
    """
    help_alone(context)


@tokens.command("create")
@click.option("--owner", metavar="USER", help="The owner; by default yourself.")
@click.option("--renewer", "renewers", multiple=True, metavar="USER", help="Who else may renew it; repeatable.")
@click.option("--lifetime", metavar="TIME", help="Maximum lifetime, such as 12h or 7d; by default the cluster's limit.")
@json_option
@target_options
def create(target: Target, owner: str | None, renewers: tuple[str, ...], lifetime: str | None, as_json: bool) -> None:
    """Create a token, and print it with its HMAC."""
    from ottla.client.tokens import create_token

    max_ms = -1 if lifetime is None else parse_duration_ms(lifetime)
    made = on_cluster(
        target, lambda client: create_token(client, owner=owner, renewers=renewers, max_lifetime_ms=max_ms)
    )
    if as_json:
        print_json({"rows": [_json(made)]})
        return
    print_table(COLUMNS, [_row(made)])
    click.echo(f"HMAC: {made.password}")


@tokens.command("list")
@click.option("--owner", "owners", multiple=True, metavar="USER", help="Only tokens of this owner; repeatable.")
@json_option
@target_options
def list_tokens(target: Target, owners: tuple[str, ...], as_json: bool) -> None:
    """List the tokens that you may see. HMACs are only in the JSON output."""
    from ottla.client.tokens import describe_tokens

    found = on_cluster(target, lambda client: describe_tokens(client, owners or None))
    found.sort(key=lambda token: (token.owner, token.issued_at_ms))
    if as_json:
        print_json({"rows": [_json(each) for each in found]})
    else:
        print_table(COLUMNS, map(_row, found))


@tokens.command("renew")
@hmac_argument
@click.option("--for", "period", metavar="TIME", help="How long from now; by default the cluster's limit.")
@target_options
def renew(target: Target, hmac_text: str, period: str | None) -> None:
    """Renew a token."""
    from ottla.client.tokens import renew_token

    hmac, period_ms = _hmac(hmac_text), -1 if period is None else parse_duration_ms(period)
    expires_ms = on_cluster(target, lambda client: renew_token(client, hmac, period_ms))
    click.echo(f"it expires at {clock(expires_ms)}")


@tokens.command("expire")
@hmac_argument
@click.option("--after", "period", metavar="TIME", help="Expire after this time; by default immediately.")
@target_options
def expire(target: Target, hmac_text: str, period: str | None) -> None:
    """Expire a token."""
    from ottla.client.tokens import expire_token

    hmac, after_ms = _hmac(hmac_text), -1 if period is None else parse_duration_ms(period)
    expires_ms = on_cluster(target, lambda client: expire_token(client, hmac, after_ms))
    click.echo(f"it expires at {clock(expires_ms)}" if period else "it has expired")


def _hmac(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except ValueError:
        raise Failure(
            "the HMAC is not base64", "`ottla tokens create` prints it, and `ottla tokens list --json`"
        ) from None


def _row(token: DelegationToken) -> tuple[object, ...]:
    moments = (clock(each) for each in (token.issued_at_ms, token.expires_at_ms, token.ends_at_ms))
    return (token.token_id, token.owner, token.renewers, *moments)


def _json(token: DelegationToken) -> dict[str, Any]:
    return {
        "token": token.token_id,
        "hmac": token.password,
        "owner": token.owner,
        "requester": token.requester,
        "renewers": list(token.renewers),
        "issued_at_ms": token.issued_at_ms,
        "expires_at_ms": token.expires_at_ms,
        "ends_at_ms": token.ends_at_ms,
    }
