"""Reads the pages that ottla brokers serve over HTTP: metrics, failed logins, and what share groups have in flight.

A page that has TLS and a login is read with those of the client. The password goes to the server that was asked and
no further, and in the clear only if the client's own login sends it so.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from http import HTTPStatus
from http.client import HTTPException, InvalidURL
from typing import Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit, urlunsplit
from urllib.request import HTTPRedirectHandler, HTTPSHandler, ProxyHandler, Request, build_opener

from ottla.client.client import Client
from ottla.client.configs import Resource, ResourceType, try_describe
from ottla.client.errors import ResponseError
from ottla.client.sasl import Plain, Scram
from ottla.client.settings import ClientSettings

__all__ = [
    "access_url",
    "inspect_addresses",
    "inspect_listeners",
    "login_headers",
    "reachable",
    "read_json",
    "read_page",
    "share_url",
]

LISTENER_SETTING: Final = "ottla.inspect.listeners"
PATH: Final = "/inspect/v1/share/"
ACCESS_PATH: Final = "/inspect/v1/access"
TIMEOUT_S: Final = 10.0
PAGE_MAX_BYTES: Final = 64 * 1024 * 1024
_ALL_ADDRESSES: Final = ("0.0.0.0", "::")


async def inspect_addresses(client: Client) -> list[str]:
    """The addresses of the brokers' inspect listeners."""
    return [each for each in (await inspect_listeners(client)).values() if isinstance(each, str)]


async def inspect_listeners(client: Client) -> dict[int, str | ResponseError | None]:
    """Broker -> the address of its inspect listener, or why it does not tell.

    None stands for a broker without one; those of Apache Kafka do not have the setting.
    """
    hosts = {str(node_id): broker.host for node_id, broker in sorted(client.metadata.brokers.items())}
    brokers = [Resource(ResourceType.BROKER, node_id) for node_id in hosts]
    outcomes = await try_describe(client, *brokers, keys=(LISTENER_SETTING,))
    found: dict[int, str | ResponseError | None] = {}
    for resource, outcome in outcomes.items():
        entry = outcome.get(LISTENER_SETTING) if isinstance(outcome, dict) else None
        address = reachable(entry.value, hosts[resource.name]) if entry is not None and entry.value else None
        found[int(resource.name)] = outcome if isinstance(outcome, ResponseError) else address
    return found


def reachable(address: str, broker_host: str) -> str:
    """An address that a listener has; one that listens on all addresses of its machine is reached by the broker's."""
    parts = urlsplit(address)
    if parts.hostname not in _ALL_ADDRESSES:
        return address
    host = f"[{broker_host}]" if ":" in broker_host else broker_host
    return urlunsplit(parts._replace(netloc=f"{host}:{parts.port}"))


def share_url(address: str, group_id: str) -> str:
    return f"{address.rstrip('/')}{PATH}{quote(group_id, safe='')}"


def access_url(address: str) -> str:
    return f"{address.rstrip('/')}{ACCESS_PATH}"


async def read_json(client: Client, url: str) -> Mapping[str, Any]:
    """The object on a page. OSError if it cannot be read."""
    try:
        found: Mapping[str, Any] = json.loads(await read_page(client, url))
    except ValueError as error:
        raise OSError(f"the response is not JSON: {error}") from None
    return found


async def read_page(client: Client, url: str, timeout_s: float = TIMEOUT_S) -> str:
    """The text of a page. OSError if it cannot be read."""
    return await asyncio.to_thread(_read, client.settings, url, timeout_s)


class _NoRedirects(HTTPRedirectHandler):
    """Whoever a page points to has no business with the client's password."""

    def redirect_request(self, *_: object) -> None:
        return None


def _read(settings: ClientSettings, url: str, timeout_s: float) -> str:
    # No proxy: it is on this machine, or near it.
    opener = build_opener(ProxyHandler({}), HTTPSHandler(context=settings.tls), _NoRedirects)
    try:
        with opener.open(Request(url, headers=login_headers(settings, url)), timeout=timeout_s) as answer:
            data: bytes = answer.read(PAGE_MAX_BYTES)
    except HTTPError as error:
        with error:
            if error.code == HTTPStatus.UNAUTHORIZED:
                raise OSError("it requires a user and a password, as with PLAIN or SCRAM") from None
            raise OSError(f"{error.code} {error.reason}") from None
    except URLError as error:
        raise OSError(str(error.reason)) from None
    except (ValueError, InvalidURL) as error:
        raise OSError(f"{url} is no address of a page: {error}") from None
    except HTTPException as error:  # such as a listener with TLS that is read without
        raise OSError(f"it is no page: {error!r}") from None
    return data.decode(errors="replace")


def login_headers(settings: ClientSettings, url: str) -> dict[str, str]:
    """The headers that log the client in to a page, if its password may go there."""
    sasl = settings.sasl
    is_in_clear = settings.tls is None and isinstance(sasl, Plain)
    if isinstance(sasl, Plain | Scram) and (url.startswith("https:") or is_in_clear):
        return {"Authorization": sasl.http_authorization()}
    return {}
